"""What came out of a Run, gathered over the API once it has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.api import Client
from warpwright.api.boards import LeaderboardEntry
from warpwright.api.judging import Candidate, Evaluation, Ratio
from warpwright.api.searching import Run

JUDGED_LIMIT = 500
"""Evaluations of at most so many Candidates are read to say where the time went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRow:
    """One Workload: what each Baseline took and what the kernel took, in microseconds, from one session."""

    workload: str
    baselines_us: Mapping[str, float]
    kernel_us: float
    against_fastest: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The end of a Run: its best kernel (confirmed or not), the times, the verdicts, and where the time went.

    `standing`: the champion of an earlier run, which this one did not beat; the times are then those of its
    confirmation.
    """

    run: Run
    best: Candidate | None
    evaluation: Evaluation | None
    rows: tuple[WorkloadRow, ...] = ()
    speedups: tuple[Ratio, ...] = ()
    verdicts: Mapping[str, int] = field(default_factory=dict)
    seconds_by_stage: Mapping[str, float] = field(default_factory=dict)
    standing: LeaderboardEntry | None = None

    @property
    def improved(self) -> bool:
        """Whether this run confirmed a champion of its own."""
        return self.best is not None and self.best.id == self.run.champion_id

    @property
    def proved(self) -> bool:
        """Whether there is a champion, of this run or of an earlier one."""
        return self.improved or self.standing is not None

    def speedup(self, against: str) -> Ratio | None:
        return next((r for r in self.speedups if r.against == against and r.workload is None), None)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "improved": self.improved,
            "standing_champion": self.standing,
            "candidate": self.best,
            "evaluation": self.evaluation,
            "candidates_by_verdict": dict(self.verdicts),
            "seconds_by_stage": dict(self.seconds_by_stage),
        }


def gather(client: Client, run: Run) -> Summary:
    """Read what a person wants to know about an ended Run."""
    candidates = list(client.each(client.list_candidates, run.id))
    own = any(c.id == run.champion_id for c in candidates)
    standing = None if own else _standing(client, run)
    wanted = run.champion_id if own else run.best_id
    best = next((c for c in candidates if c.id == wanted), None)
    seconds: dict[str, float] = {}
    shown: Evaluation | None = None
    for candidate in sorted(candidates, key=lambda c: c.id != wanted)[:JUDGED_LIMIT]:
        evaluations = _evaluations(client, candidate.id)
        for evaluation in evaluations:
            for stage, value in evaluation.duration_s.items():
                seconds[stage] = seconds.get(stage, 0.0) + value
        if candidate.id == wanted and standing is None:
            shown = _shown(evaluations)
    if standing is not None:
        shown = _shown(_evaluations(client, standing.candidate_id))
    return Summary(
        run=run,
        best=best,
        evaluation=shown,
        rows=_rows(shown) if shown else (),
        speedups=shown.speedups if shown else (),
        verdicts=Counter(c.verdict or "not judged" for c in candidates),
        seconds_by_stage=seconds,
        standing=standing,
    )


def _standing(client: Client, run: Run) -> LeaderboardEntry | None:
    """The champion that stands for the run's problem on its kind of device."""
    return next(iter(client.list_leaderboard(problem_id=run.problem_id, device=run.device_kind).items), None)


def _evaluations(client: Client, candidate_id: str) -> list[Evaluation]:
    records = client.each(client.list_evaluations, candidate_id)
    return [record.result for record in records if record.result is not None]


def _shown(evaluations: Iterable[Evaluation]) -> Evaluation | None:
    """The one whose times are shown."""
    shown: Evaluation | None = None
    for evaluation in evaluations:
        if evaluation.verdict == "PASSED":
            shown = _better(shown, evaluation)
    return shown


def _better(now: Evaluation | None, other: Evaluation) -> Evaluation:
    """The one to show: a confirmed Evaluation before a judged one, else the later."""
    if now is not None and now.stage == "confirm" and other.stage != "confirm":
        return now
    return other


def _rows(evaluation: Evaluation) -> tuple[WorkloadRow, ...]:
    ratios = {ratio.workload: ratio for ratio in evaluation.speedups if ratio.against == "fastest"}
    return tuple(
        WorkloadRow(
            workload=item.workload,
            baselines_us={baseline.mode: baseline.median_us for baseline in item.baselines},
            kernel_us=item.median_us,
            against_fastest=ratios.get(item.workload),
        )
        for item in evaluation.measurements
    )
