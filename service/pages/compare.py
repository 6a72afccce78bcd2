"""Two or more Candidates side by side: results, Tunables, and the difference in text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, evaluations, history, problems, runs
from db.views.rows import CandidateView, ChampionView
from evaluator.types import Evaluation, Measurement, Ratio
from evolution.types import Run
from service.context import Ctx
from service.http.answering import checked_id, refusals
from service.identity.principal import Reads
from service.rendering.diffs import diff
from service.rendering.templates import page
from service.routers.downloads import deciding_evaluation

router = APIRouter()

MOST = 6
Ids = Annotated[list[str], Query(alias="id", max_length=50)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One Candidate of the comparison. `ratio` is confirmed where `won` is set."""

    candidate: CandidateView
    run: Run
    problem_name: str
    won: ChampionView | None
    official: Evaluation | None

    @property
    def ratio(self) -> Ratio | None:
        return self.won.against_fastest if self.won is not None else self.candidate.speedup

    def measurement(self, workload: str) -> Measurement | None:
        """Return the official times on a Workload."""
        found = self.official.measurements if self.official is not None else ()
        return next((m for m in found if m.workload == workload), None)


@router.get("/compare")
def show(context: Ctx, who: Reads, id: Ids = []) -> Response:  # noqa: B006  FastAPI copies it
    """Show Candidates by id; with fewer than two, a form to choose some."""
    ids = [checked_id(one, "candidate") for one in dict.fromkeys(id)]
    chosen = ids[:MOST]
    with read_session(context.engine) as session, refusals():
        views = [candidates.get(session, one, project_id=who.project_id) for one in chosen]
        names = problems.names(session, {view.problem_id for view in views})
        sides = [
            Side(
                candidate=view,
                run=runs.get(session, view.run_id),
                problem_name=names[view.problem_id],
                won=history.promotion_of(session, view.run_id, view.id),
                official=deciding_evaluation(evaluations.for_candidate(session, view.id, samples=False)),
            )
            for view in views
        ]
        sources = [candidates.source(session, view.id).source for view in views[:2]]
    return page(
        "compare.html",
        section="runs",
        sides=sides,
        left_out=len(ids) - len(chosen),
        caveats=_caveats(sides),
        workloads=_workloads(sides),
        settings=_differing([side.candidate.configuration for side in sides]),
        found=diff(sources[0], sources[1]) if len(sources) == 2 else None,
        top=max((side.ratio.interval.high for side in sides if side.ratio is not None), default=1.25),
    )


def _caveats(sides: Sequence[Side]) -> list[str]:
    """Return the reasons why these numbers are not comparable."""
    lines = []
    if len({side.candidate.problem_id for side in sides}) > 1:
        lines.append("They solve different problems: their speedups are not comparable.")
    devices = {side.official.device.name for side in sides if side.official is not None and side.official.device}
    if len(devices) > 1:
        lines.append(f"They were judged on different devices ({', '.join(sorted(devices))}).")
    if len({side.won is not None for side in sides}) > 1:
        lines.append("Some of these numbers are confirmed and some are not.")
    if len(sides) > 1 and not lines:
        lines.append("Each was timed in a session of its own: only separate intervals show a difference.")
    return lines


def _workloads(sides: Sequence[Side]) -> list[tuple[str, list[Measurement | None]]]:
    names = dict.fromkeys(m.workload for side in sides if side.official is not None for m in side.official.measurements)
    return [(name, [side.measurement(name) for side in sides]) for name in names]


def _differing(configurations: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return the Tunables with several values among the Candidates."""
    keys = dict.fromkeys(key for one in configurations for key in one)
    rows = [(key, [one.get(key, "–") for one in configurations]) for key in keys]
    return [(key, values) for key, values in rows if len({str(value) for value in values}) > 1]
