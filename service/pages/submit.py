"""Start a Run: the form, a preview of the reference while it is written, and its likely cost."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import RedirectResponse, Response

from db.engine import read_session
from db.repositories import expectations, problems
from db.repositories.work import devices
from db.views.rows import Expectation
from evaluator.types import DeviceKind, Domain, Problem
from service.context import Context, Ctx
from service.errors import NotFound, ServiceError, Unprocessable
from service.http.answering import checked_id, refusals
from service.identity.principal import Principal, Submits
from service.pages import forms
from service.pages.forms import RunForm
from service.problem_source import read_request
from service.rendering.templates import page
from service.routers import runs as run_routes

router = APIRouter()

Filled = Annotated[RunForm, Depends(forms.run_form)]


EXAMPLES = Path(__file__).parents[2] / "examples" / "problems"


@functools.cache
def example_names() -> tuple[str, ...]:
    """Return the names of the example problems of this checkout."""
    return tuple(sorted(path.stem for path in EXAMPLES.glob("*.py")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The likely extent of the Run, in (least, likely, most); `bound` names the limit that ends it first."""

    runs: int
    candidates: tuple[float, float, float]
    device_s: tuple[float, float, float]
    wall_s: tuple[float, float, float]
    usd: tuple[float, float, float]
    bound: str


@router.get("/submit")
def show(
    context: Ctx,
    who: Submits,
    problem: Annotated[str | None, Query(max_length=60)] = None,
    example: Annotated[str | None, Query(max_length=60)] = None,
) -> Response:
    """Show the form, empty or filled with a stored Problem or an example."""
    form = RunForm(proposers=context.settings.default_proposers)
    if example is not None:
        if example not in example_names():
            raise NotFound("There is no such example: the form lists them.")
        source = (EXAMPLES / f"{example}.py").read_text(encoding="utf-8")
        form = dataclasses.replace(form, name=example, source=source)
    elif problem is not None:
        with read_session(context.engine) as session, refusals():
            view = problems.get(session, checked_id(problem, "problem"), project_id=who.project_id)
        form = RunForm(
            name=view.name,
            source=view.problem.source,
            device=_first_device(view.problem),
            proposers=context.settings.default_proposers,
        )
    return _page(context, who, form)


@router.post("/submit/check")
def check(context: Ctx, who: Submits, form: Filled) -> Response:
    """Preview the reference, and estimate the cost of the Run. The reference is read, never executed."""
    response = page("_check.html", **_look(context, who, form))
    response.headers["Cache-Control"] = "no-store"
    return response


@router.post("/submit")
def submit(context: Ctx, who: Submits, request: Request, form: Filled) -> Response:
    """Store the Problem, start the Run, and go to its page; with an error in it, show the form again."""
    try:
        found, _ = read_request(forms.problem_request(form))
        body = forms.run_request(form, forms.with_workloads(form.source, found, form))
        answer = run_routes.create(context, who, request, body)
    except ServiceError as error:
        if error.status >= 500:
            raise
        return _page(context, who, form, refusal=error, status=error.status)
    return RedirectResponse(answer.headers["location"].removeprefix("/api/v1"), status_code=303)


def _page(
    context: Context, who: Principal, form: RunForm, *, refusal: ServiceError | None = None, status: int = 200
) -> Response:
    with read_session(context.engine) as session:
        served = {view.device.kind.value for view in devices.list(session)}
    return page(
        "submit.html",
        status=status,
        section="submit",
        refusal=refusal,
        served=served,
        kinds=[kind.value for kind in DeviceKind],
        domains=[domain.value for domain in Domain],
        proposers=_offered(context),
        examples=() if form.source.strip() else example_names(),
        **_look(context, who, form),
    )


def _offered(context: Context) -> tuple[str, ...]:
    """Return the proposers to choose from. A single model has no name beside "model", which means all of them."""
    names, models = context.settings.proposer_names, context.settings.models
    return tuple(name for name in names if name != models[0].name) if len(models) == 1 else names


def _look(context: Context, who: Principal, form: RunForm) -> dict[str, Any]:
    """Return the Problem as it reads now, or its error; and the estimate."""
    problem: Problem | None = None
    description, trouble, line = "", "", None
    if form.source.strip():
        try:
            problem, description = read_request(forms.problem_request(form))
        except Unprocessable as error:
            trouble, line = error.detail, error.extra.get("line")
    estimate, unknown = None, ""
    try:
        kind = DeviceKind(form.device)
        with read_session(context.engine) as session:
            known = expectations.expectation(session, who.project_id, kind)
        estimate = None if known is None else estimate_of(form, known)
        unknown = "" if known is not None else f"No estimate: no run on {kind.value} has ended here yet."
    except (ValueError, Unprocessable) as error:
        unknown = str(error)
    return {
        "problem": problem,
        "description": description,
        "trouble": trouble,
        "line": line,
        "estimate": estimate,
        "unknown": unknown,
        "left_out": forms.unticked(problem, form) if problem is not None else (),
        "asks_models": any(one.name in form.proposers or not form.proposers for one in context.settings.models),
        "form": form,
    }


def estimate_of(form: RunForm, known: Expectation) -> Estimate:
    """Estimate from the use of one Candidate in similar Runs: how many the limits allow, and their use together."""
    request = forms.run_request(
        RunForm(
            name="estimate",
            device=form.device,
            candidates=form.candidates,
            minutes=form.minutes,
            usd=form.usd,
            device_minutes=form.device_minutes,
        ),
        "-",
    )
    limits = request.budget
    allowed = {
        "candidates": (float(limits.candidates),) * 3 if limits.candidates else None,
        "time": _fits(limits.wall_s, known.wall_s, known.confirm_s),
        "dollars": _fits(limits.usd, known.usd, 0.0),
        "device time": _fits(limits.device_s, known.device_s, known.confirm_s),
    }
    given = {name: counts for name, counts in allowed.items() if counts is not None}
    if not given:
        raise Unprocessable("No estimate: earlier runs used nothing of these limits.")
    bound = min(given, key=lambda name: given[name][1])
    counts = tuple(min(each[i] for each in given.values()) for i in range(3))
    return Estimate(
        runs=known.runs,
        candidates=(counts[0], counts[1], counts[2]),
        device_s=_total(counts, known.device_s, known.confirm_s, limits.device_s),
        wall_s=_total(counts, known.wall_s, known.confirm_s, limits.wall_s),
        usd=_total(counts, known.usd, 0.0, limits.usd),
        bound=bound,
    )


def _fits(limit: float | None, each: tuple[float, float, float], once: float) -> tuple[float, float, float] | None:
    """Return how many Candidates fit a limit (fewest, likely, most); None without a limit, or for use of none of it."""
    if limit is None or min(each) <= 0:
        return None
    left = max(0.0, limit - once)
    return left / each[2], left / each[1], left / each[0]


def _total(
    counts: tuple[float, ...], each: tuple[float, float, float], once: float, limit: float | None
) -> tuple[float, float, float]:
    """Return the use of that many together, at most the limit; likely by the likely count."""
    spent = sorted((counts[0] * each[0], counts[1] * each[1], counts[2] * each[2]))
    low, likely, high = (min(one + once, limit) if limit is not None else one + once for one in spent)
    return low, likely, high


def _first_device(problem: Problem) -> str:
    kinds = [kind for kind in DeviceKind if any(not w.held_out for w in problem.workloads_for(kind))]
    return kinds[0].value if kinds else DeviceKind.CPU.value
