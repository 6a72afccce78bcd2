"""The form of a new Run: parsed, and converted to the API's requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Form
from pydantic import ValidationError

from evaluator.recipe_sizes import parse_size
from evaluator.types import Problem, Workload
from service.errors import Unprocessable
from service.http.problem_details import field_errors
from service.schemas.requests import ExtendRequest, ProblemRequest, RunRequest

# Without limits of length: the request checks these and brings the form back, where the form would lose its source.
Line = Annotated[str, Form()]
Lines = Annotated[list[str], Form()]

_LABELS = {
    "/problem/name": "Name",
    "/problem/source": "Source",
    "/problem/sizes": "More workloads",
    "/budget": "Budget",
    "/budget/candidates": "Candidates",
    "/budget/wall_s": "Minutes",
    "/budget/usd": "Dollars",
    "/budget/device_s": "Device minutes",
    "/config/target_speedup": "Stop at",
    "/config/proposers": "Proposers",
    "/device": "Device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForm:
    """The fields as text. `shown` are the names of the Workloads with a checkbox, `chosen` those ticked."""

    name: str = ""
    source: str = ""
    device: str = "cpu"
    domain: str = ""
    sizes: str = ""
    candidates: str = "40"
    minutes: str = "10"
    usd: str = ""
    device_minutes: str = ""
    target: str = ""
    proposers: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()

    def leaves_out(self, name: str) -> bool:
        """Tell whether the reader has unticked this Workload."""
        return name in self.shown and name not in self.chosen


def run_form(
    name: Line = "",
    source: Line = "",
    device: Line = "cpu",
    domain: Line = "",
    sizes: Line = "",
    candidates: Line = "",
    minutes: Line = "",
    usd: Line = "",
    device_minutes: Line = "",
    target: Line = "",
    proposers: Lines = [],  # noqa: B006  FastAPI copies it
    shown: Lines = [],  # noqa: B006
    chosen: Lines = [],  # noqa: B006
) -> RunForm:
    """Read the form from a request's body."""
    return RunForm(
        name=name.strip(),
        source=source,
        device=device,
        domain=domain,
        sizes=sizes,
        candidates=candidates.strip(),
        minutes=minutes.strip(),
        usd=usd.strip(),
        device_minutes=device_minutes.strip(),
        target=target.strip(),
        proposers=tuple(proposers),
        shown=tuple(shown),
        chosen=tuple(chosen),
    )


def run_request(form: RunForm, source: str) -> RunRequest:
    """Convert to the API's request. Raise Unprocessable naming every wrong field."""
    limits = {
        "candidates": _number(form.candidates, "Candidates"),
        "wall_s": _scaled(_number(form.minutes, "Minutes"), 60.0),
        "usd": _number(form.usd, "Dollars"),
        "device_s": _scaled(_number(form.device_minutes, "Device minutes"), 60.0),
    }
    config: dict[str, Any] = {"proposers": list(form.proposers)} if form.proposers else {}
    if form.target:
        config["target_speedup"] = _number(form.target, "Stop at")
    body = {
        "problem": _problem(form, form.name, source),
        "device": form.device,
        "budget": {key: value for key, value in limits.items() if value is not None},
        "config": config,
    }
    try:
        return RunRequest.model_validate(body)
    except ValidationError as error:
        raise Unprocessable(words(error), title="The form is not complete") from error


def extend_request(candidates: str, minutes: str) -> ExtendRequest:
    """Return more budget as the API takes it. Raise Unprocessable."""
    limits = {
        "candidates": _number(candidates.strip(), "Candidates"),
        "wall_s": _scaled(_number(minutes.strip(), "Minutes"), 60.0),
    }
    try:
        return ExtendRequest.model_validate({"budget": {key: one for key, one in limits.items() if one is not None}})
    except ValidationError as error:
        raise Unprocessable(words(error), title="The form is not complete") from error


def problem_request(form: RunForm) -> ProblemRequest:
    """Return the Problem alone, for the preview while it is written; it gets a default name where it has none yet."""
    try:
        return ProblemRequest.model_validate(_problem(form, form.name or "unnamed", form.source))
    except ValidationError as error:
        raise Unprocessable(words(error, "problem"), title="The reference cannot be read") from error


def _problem(form: RunForm, name: str, source: str) -> dict[str, Any]:
    """Return the Problem as the API takes it. Workloads that are written into the source need no sizes. Raise
    Unprocessable."""
    lines = [line for line in form.sizes.splitlines() if line.strip()] if source == form.source else []
    try:
        sizes = [parse_size(line) for line in lines]
    except ValueError as error:
        raise Unprocessable(f"More workloads: {error}.", title="The form is not complete") from error
    return {"name": name, "source": source, "sizes": sizes, **({"domain": form.domain} if form.domain else {})}


def words(error: ValidationError, *under: str) -> str:
    """Describe what to correct, field by field; `under` is where the checked part belongs in the whole request."""
    found = field_errors([{**one, "loc": ("body", *under, *one["loc"])} for one in error.errors()])
    return "; ".join(f"{_LABELS.get(one['field'], one['field'].strip('/'))}: {one['message']}" for one in found)


def with_workloads(source: str, problem: Problem, form: RunForm) -> str:
    """Return the source, with WORKLOADS set anew at its end where some are unticked. Raise Unprocessable."""
    kept = [one for one in problem.workloads if not form.leaves_out(one.name)]
    if len(kept) == len(problem.workloads):
        return source
    if not any(not one.held_out for one in kept):
        raise Unprocessable("Choose at least one workload that is not held out.", title="Nothing to optimise")
    lines = "".join(f"    {entry(one)!r},\n" for one in kept)
    return f"{source.rstrip()}\n\n# Chosen when the run was started.\nWORKLOADS = [\n{lines}]\n"


def entry(workload: Workload) -> dict[str, Any]:
    """Return a Workload as a problem file writes it."""
    written: dict[str, Any] = {"name": workload.name, **workload.sizes}
    if workload.weight != 1.0:
        written["weight"] = workload.weight
    if workload.device is not None:
        written["device"] = workload.device.value
    if workload.held_out:
        written["held_out"] = True
    return written


def _number(text: str, label: str) -> float | None:
    if not text:
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError as error:
        raise Unprocessable(f"{label}: {text[:20]!r} is not a number.", title="The form is not complete") from error


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value * by


def unticked(problem: Problem, form: RunForm) -> Sequence[str]:
    """Return the names of the Workloads that the reader has left out."""
    return [one.name for one in problem.workloads if form.leaves_out(one.name)]
