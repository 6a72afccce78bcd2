"""The results of an ended Run, read over the API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.api import Client
from warpwright.api.boards import LeaderboardEntry
from warpwright.api.judging import Candidate, Evaluation, Ratio
from warpwright.api.searching import Run

MAX_CANDIDATES_READ = 500
"""The time by stage is summed over the Evaluations of at most so many Candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRow:
    """The times of one Workload in microseconds: of each Baseline and of the kernel, from one session."""

    workload: str
    baselines_us: Mapping[str, float]
    kernel_us: float
    against_fastest: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The results of a Run: its best kernel (confirmed or not), times, verdicts, and seconds by stage.

    `standing_champion` is the champion of an earlier run that this one did not beat. The times are then those of its
    confirmation.
    """

    run: Run
    best: Candidate | None
    evaluation: Evaluation | None
    rows: tuple[WorkloadRow, ...] = ()
    speedups: tuple[Ratio, ...] = ()
    verdicts: Mapping[str, int] = field(default_factory=dict)
    seconds_by_stage: Mapping[str, float] = field(default_factory=dict)
    standing_champion: LeaderboardEntry | None = None

    @property
    def improved(self) -> bool:
        """True if this run confirmed a champion of its own."""
        return self.best is not None and self.best.id == self.run.champion_id

    @property
    def proved(self) -> bool:
        """True if there is a champion, of this run or of an earlier one."""
        return self.improved or self.standing_champion is not None

    @property
    def estimate(self) -> Ratio | None:
        """The estimated speedup over the fastest Baseline, if the times are over one that a later one overtook."""
        if self.best is None or self.standing_champion is not None or not self.best.outdated:
            return None
        return self.best.speedup

    @property
    def timed_against(self) -> str:
        """The fastest Baselines of the times' own session: "compile", or "compile and eager"."""
        modes = {min(row.baselines_us, key=row.baselines_us.__getitem__) for row in self.rows if row.baselines_us}
        return " and ".join(sorted(modes)) or "a baseline"

    def speedup(self, against: str) -> Ratio | None:
        return next((r for r in self.speedups if r.against == against and r.workload is None), None)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "improved": self.improved,
            "standing_champion": self.standing_champion,
            "candidate": self.best,
            "evaluation": self.evaluation,
            "candidates_by_verdict": dict(self.verdicts),
            "seconds_by_stage": dict(self.seconds_by_stage),
        }


def summarise(client: Client, run: Run) -> Summary:
    """Return the results of an ended Run."""
    candidates = list(client.each(client.list_candidates, run.id))
    own = any(c.id == run.champion_id for c in candidates)
    standing_champion = None if own else _find_standing_champion(client, run)
    wanted = run.champion_id if own else run.best_id
    best = next((c for c in candidates if c.id == wanted), None)
    seconds: dict[str, float] = {}
    shown: Evaluation | None = None
    for candidate in sorted(candidates, key=lambda c: c.id != wanted)[:MAX_CANDIDATES_READ]:
        evaluations = _evaluations(client, candidate.id)
        for evaluation in evaluations:
            for stage, value in evaluation.duration_s.items():
                seconds[stage] = seconds.get(stage, 0.0) + value
        if candidate.id == wanted and standing_champion is None:
            shown = _evaluation_to_show(evaluations)
    if standing_champion is not None:
        shown = _evaluation_to_show(_evaluations(client, standing_champion.candidate_id))
    return Summary(
        run=run,
        best=best,
        evaluation=shown,
        rows=_rows(shown) if shown else (),
        speedups=shown.speedups if shown else (),
        verdicts=Counter(c.verdict or "not judged" for c in candidates),
        seconds_by_stage=seconds,
        standing_champion=standing_champion,
    )


def _find_standing_champion(client: Client, run: Run) -> LeaderboardEntry | None:
    """Return the current champion of the run's problem on its kind of device."""
    return next(iter(client.list_leaderboard(problem_id=run.problem_id, device=run.device_kind).items), None)


def _evaluations(client: Client, candidate_id: str) -> list[Evaluation]:
    records = client.each(client.list_evaluations, candidate_id)
    return [record.result for record in records if record.result is not None]


def _evaluation_to_show(evaluations: Iterable[Evaluation]) -> Evaluation | None:
    """Return the Evaluation with the times to show, if any passed."""
    shown: Evaluation | None = None
    for evaluation in evaluations:
        if evaluation.verdict == "PASSED":
            shown = _preferred(shown, evaluation)
    return shown


def _preferred(now: Evaluation | None, other: Evaluation) -> Evaluation:
    """Prefer a confirmation to a judgement, else the later of the two."""
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
