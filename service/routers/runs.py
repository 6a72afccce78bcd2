"""Runs: start one, list them, read one, pause, resume and cancel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol

from fastapi import APIRouter, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, history, problems, runs
from db.repositories.access import projects
from db.repositories.work import webhooks
from db.transitions.runs import cancel_run, create_run, pause_run, resume_run
from db.transitions.work.webhooks import set_webhook
from db.views.rows import WebhookView
from evaluator.types import DeviceKind
from evolution.types import Run, RunConfig, RunKind, RunStatus
from runtime.addresses import is_listed, is_public, literal, read_url
from service.context import Context, Ctx
from service.errors import Unprocessable
from service.http.answering import RunId, answer, errors, refusals, write_errors
from service.http.paging import Cursor, Limit, Search, decode_cursor, encode_cursor
from service.idempotency import Done, IdempotencyKey, perform
from service.identity.principal import Principal, Reads, Submits
from service.problem_source import ChosenProblem
from service.schemas.answers import RunPage, RunSummary
from service.schemas.fields import ProblemRef
from service.schemas.requests import RunRequest

router = APIRouter(prefix="/runs", tags=["runs"])


@router.post(
    "",
    operation_id="create_run",
    status_code=202,
    response_model=Run,
    responses=write_errors(404, 409),
    summary="Start a Run",
)
def create(context: Ctx, who: Submits, request: Request, body: RunRequest, key: IdempotencyKey = None) -> Response:
    """Start optimising a Problem, stored or given here. Follow the Run at `Location`."""
    config = body.config.config(context.settings.default_proposers)
    check_proposers(context, config)
    if body.webhook is not None:
        check_webhook(context, body.webhook.url)
    chosen = ChosenProblem.read(body.problem_id, body.problem, body.device)

    def work(session: Session) -> Done:
        problem = chosen.find(session, who.project_id)
        run, nudges = create_run(session, who.project_id, problem.id, body.device, body.budget.budget(), config)
        check_prices(context, session, run)
        if body.webhook is not None:
            set_webhook(session, run.id, body.webhook.url, body.webhook.secret)
        return Done(value=run, status=202, location=f"/api/v1/runs/{run.id}", nudges=nudges)

    return perform(context, who, request, key, body, work, operation="create_run")


def check_proposers(context: Context, config: RunConfig) -> None:
    """Raise Unprocessable for a Proposer that is not configured here."""
    known, replays = context.settings.proposer_names, context.settings.replay_dir is not None
    unknown = [n for n in config.proposers if n not in known and not (replays and n.startswith("replay:"))]
    if unknown:
        remedy = " The operator can set WARPWRIGHT_REPLAY_DIR." if unknown[0].startswith("replay:") else ""
        raise Unprocessable(
            f"There is no Proposer named {unknown[0]!r} here. Known: {', '.join(known)}.{remedy}",
            slug="unknown-proposer",
            title="The Proposer is not configured",
        )


def check_prices(context: Context, session: Session, run: Run) -> None:
    """Raise Unprocessable for dollars, of a budget or quota, that a model without known prices could not be held to."""
    quota = projects.get(session, run.project_id).quota.usd_per_month
    if run.budget.usd is None and quota is None:
        return
    asked = set(run.config.proposers)
    unpriced = [e.name for e in context.settings.models if not e.priced and asked & {e.name, "model"}]
    if unpriced:
        limit, remedy = "a budget in dollars", "Leave out the dollars or name"
        if quota is not None:
            limit, remedy = "the project's quota of dollars", "Name"
        raise Unprocessable(
            f"The prices of {', '.join(unpriced)} are not known, so {limit} cannot be kept. {remedy} other Proposers;"
            " the operator can give usd_per_million_input and usd_per_million_output in WARPWRIGHT_MODELS (0: free).",
            slug="unpriced-model",
            title="A model has no price",
        )


def check_webhook(context: Context, url: str) -> None:
    """Raise Unprocessable for an internal address. A name's addresses are checked at delivery."""
    target = read_url(url)
    address = literal(target.host)
    internal = target.host == "localhost" if address is None else not is_public(address)
    if internal and not is_listed(target, context.settings.webhook_internal_hosts):
        raise Unprocessable(
            "The webhook goes to an internal address; the operator can allow it in WARPWRIGHT_WEBHOOK_INTERNAL_HOSTS.",
            slug="internal-webhook",
            title="The webhook's address is not allowed",
        )


@router.get("", operation_id="list_runs", response_model=RunPage, responses=errors(), summary="List Runs")
def list_all(
    context: Ctx,
    who: Reads,
    limit: Limit = 50,
    cursor: Cursor = None,
    status: Annotated[list[RunStatus] | None, Query(description="Only these; may be given several times.")] = None,
    problem_id: Annotated[ProblemRef | None, Query(description="Only those of this Problem.")] = None,
    device: Annotated[DeviceKind | None, Query(description="Only those for this kind of device.")] = None,
    kind: Annotated[RunKind, Query(description="Searches, or submitted Candidates.")] = RunKind.OPTIMISE,
    q: Search = None,
) -> Response:
    """List Runs, newest first."""
    only = runs.Filter(
        kind=kind, problem_id=problem_id, device_kind=device, statuses=tuple(dict.fromkeys(status or ())), text=q
    )
    list_name = f"runs:{only!r}"
    after = decode_cursor(list_name, cursor)
    with read_session(context.engine) as session:
        found = runs.list(session, who.project_id, limit=limit + 1, after=after, only=only)
        items = _summaries(session, found[:limit])
    more = encode_cursor(list_name, found[limit - 1].id) if len(found) > limit else None
    return answer(RunPage(items=items, next_cursor=more))


def _summaries(session: Session, shown: Sequence[Run]) -> tuple[RunSummary, ...]:
    """Return a page of Runs with the names and speedups that they lead to, from three queries."""
    names = problems.names(session, {run.problem_id for run in shown})
    crowned = history.newest_champions(session, [run.id for run in shown if run.champion_id is not None])
    best = {one.id: one for one in candidates.get_many(session, [run.best_id for run in shown if run.best_id])}
    return tuple(
        RunSummary.of(run, names[run.problem_id], crowned.get(run.id), best.get(run.best_id or "")) for run in shown
    )


@router.get("/{id}", operation_id="get_run", response_model=Run, responses=errors(404), summary="Read a Run")
def get(context: Ctx, who: Reads, id: RunId) -> Response:
    """Return its state, budget and spend, and the best so far."""
    with read_session(context.engine) as session, refusals():
        return answer(runs.get(session, id, project_id=who.project_id))


@router.get(
    "/{id}/webhook",
    operation_id="get_webhook",
    response_model=WebhookView,
    responses=errors(404),
    summary="Read the webhook of a Run",
)
def get_webhook(context: Ctx, who: Reads, id: RunId) -> Response:
    """Return its address and the outcome of its delivery. The secret is never returned."""
    with read_session(context.engine) as session, refusals():
        runs.get(session, id, project_id=who.project_id)
        return answer(webhooks.get(session, id))


class Transition(Protocol):
    """A change of a Run's state, as `db.transitions.runs` has them."""

    def __call__(self, s: Session, run_id: str, *, project_id: str | None = None) -> tuple[Run, list[str]]: ...


def _change(
    context: Context,
    who: Principal,
    request: Request,
    key: str | None,
    run_id: str,
    transition: Transition,
    *,
    operation: str,
) -> Response:
    def work(session: Session) -> Done:
        run, nudges = transition(session, run_id, project_id=who.project_id)
        return Done(value=run, status=200, nudges=nudges)

    return perform(context, who, request, key, None, work, operation=operation)


@router.post(
    "/{id}/cancel", operation_id="cancel_run", summary="Cancel a Run", response_model=Run, responses=write_errors(404)
)
def cancel(context: Ctx, who: Submits, request: Request, id: RunId, key: IdempotencyKey = None) -> Response:
    """End the Run now; work in flight is stored. A Run that has ended stays as it is."""
    return _change(context, who, request, key, id, cancel_run, operation="cancel_run")


@router.post(
    "/{id}/pause", operation_id="pause_run", summary="Pause a Run", response_model=Run, responses=write_errors(404, 409)
)
def pause(context: Ctx, who: Submits, request: Request, id: RunId, key: IdempotencyKey = None) -> Response:
    """Pause the Run: nothing new starts, work in flight is stored, the wall clock stops."""
    return _change(context, who, request, key, id, pause_run, operation="pause_run")


@router.post(
    "/{id}/resume",
    operation_id="resume_run",
    summary="Resume a Run",
    response_model=Run,
    responses=write_errors(404, 409),
)
def resume(context: Ctx, who: Submits, request: Request, id: RunId, key: IdempotencyKey = None) -> Response:
    """Resume a paused Run."""
    return _change(context, who, request, key, id, resume_run, operation="resume_run")
