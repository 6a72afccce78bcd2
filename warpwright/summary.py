"""What came out of a Run, gathered over the API once it has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.client import Client
from warpwright.models import Candidate, Champion, JsonObject, Ratio, Run

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
    evaluation: JsonObject | None
    rows: tuple[WorkloadRow, ...] = ()
    speedups: tuple[Ratio, ...] = ()
    verdicts: Mapping[str, int] = field(default_factory=dict)
    seconds_by_stage: Mapping[str, float] = field(default_factory=dict)
    standing: Champion | None = None

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
            "run": self.run.raw,
            "improved": self.improved,
            "standing_champion": self.standing.raw if self.standing else None,
            "candidate": self.best.raw if self.best else None,
            "evaluation": self.evaluation,
            "candidates_by_verdict": dict(self.verdicts),
            "seconds_by_stage": dict(self.seconds_by_stage),
        }


def gather(client: Client, run: Run) -> Summary:
    """Read what a person wants to know about an ended Run."""
    candidates = list(client.candidates(run.id))
    own = any(c.id == run.champion_id for c in candidates)
    standing = None if own else _standing(client, run)
    wanted = run.champion_id if own else run.best_id
    best = next((c for c in candidates if c.id == wanted), None)
    seconds: dict[str, float] = {}
    shown: JsonObject | None = None
    for candidate in sorted(candidates, key=lambda c: c.id != wanted)[:JUDGED_LIMIT]:
        evaluations = [record["result"] for record in client.evaluations(candidate.id) if record["result"]]
        for evaluation in evaluations:
            for stage, value in (evaluation.get("duration_s") or {}).items():
                seconds[stage] = seconds.get(stage, 0.0) + float(value)
        if candidate.id == wanted and standing is None:
            shown = _shown(evaluations)
    if standing is not None:
        records = client.evaluations(standing.candidate_id)
        shown = _shown(record["result"] for record in records if record["result"])
    return Summary(
        run=run,
        best=best,
        evaluation=shown,
        rows=_rows(shown) if shown else (),
        speedups=_ratios(shown) if shown else (),
        verdicts=Counter(c.verdict or "not judged" for c in candidates),
        seconds_by_stage=seconds,
        standing=standing,
    )


def _standing(client: Client, run: Run) -> Champion | None:
    """The champion that stands for the run's problem on its kind of device."""
    kind = run.raw.get("device_kind")
    champions = (c for c in client.leaderboard() if c.problem_id == run.problem_id)
    return next((c for c in champions if c.raw.get("device_kind") == kind), None)


def _shown(evaluations: Iterable[JsonObject]) -> JsonObject | None:
    """The one whose times are shown."""
    shown: JsonObject | None = None
    for evaluation in evaluations:
        if evaluation.get("verdict") == "PASSED":
            shown = _better(shown, evaluation)
    return shown


def _better(now: JsonObject | None, other: JsonObject) -> JsonObject:
    """The one to show: a confirmed Evaluation before a judged one, else the later."""
    if now is not None and now.get("stage") == "confirm" and other.get("stage") != "confirm":
        return now
    return other


def _ratios(evaluation: JsonObject) -> tuple[Ratio, ...]:
    read = (Ratio.read(item) for item in evaluation.get("speedups") or ())
    return tuple(ratio for ratio in read if ratio is not None)


def _rows(evaluation: JsonObject) -> tuple[WorkloadRow, ...]:
    ratios = _ratios(evaluation)
    rows = []
    for item in evaluation.get("measurements") or ():
        name = str(item["workload"])
        rows.append(
            WorkloadRow(
                workload=name,
                baselines_us={str(b["mode"]): float(b["median_us"]) for b in item.get("baselines") or ()},
                kernel_us=float(item["median_us"]),
                against_fastest=next((r for r in ratios if r.against == "fastest" and r.workload == name), None),
            )
        )
    return tuple(rows)
