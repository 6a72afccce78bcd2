"""Records for pages: tallies of verdicts, and the moments at which a Run's best changed."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.clock import now
from db.repositories.runs import wall_s
from db.tables import counters
from db.tables.core import CandidateRow, RunRow
from db.tables.history import DeviceHourRow, MilestoneRow, TallyRow
from evaluator.types import Evaluation, Ratio, Stage


def count_evaluation(s: Session, run: RunRow, kind: str, evaluation: Evaluation, device_s: float) -> None:
    """Count an ended Evaluation for the Run's pages and for the installation's metrics.

    `kind` is judge or confirm. The Run's row must be locked.
    """
    key = (run.id, kind, evaluation.stage.value, evaluation.verdict.value)
    row = s.get(TallyRow, key)
    if row is None:
        row = TallyRow(run_id=key[0], kind=kind, stage=key[2], verdict=key[3], number=0, device_s=0.0)
        s.add(row)
    row.number += 1
    row.device_s += device_s
    counters.count(s, "evaluations", kind, key[2], key[3])
    for stage, seconds in evaluation.duration_s.items():
        counters.observe(s, "stage_seconds", seconds, stage[:40])
    if evaluation.device is not None:
        counters.count(s, "device_seconds", evaluation.device.kind.value, evaluation.device.name, by=device_s)


_OBSERVED = ("sm_mhz", "memory_mhz", "temperature_c", "power_w", "throttle")
_WITHOUT_DEVICE = (Stage.SCREEN, Stage.BUILD)


def record_device_use(s: Session, evaluation: Evaluation) -> None:
    """Add seconds on the device to its present hour; screening and building do not hold it."""
    busy_s = sum(took for stage, took in evaluation.duration_s.items() if stage not in _WITHOUT_DEVICE)
    if evaluation.device is None or busy_s <= 0:
        return
    told = evaluation.measurements[-1].diagnostics if evaluation.measurements else {}
    observed = {key: told[key] for key in _OBSERVED if told.get(key) is not None} or None
    values = {
        "uuid": evaluation.device.uuid,
        "hour": now(s).replace(minute=0, second=0, microsecond=0),
        "busy_s": busy_s,
        "evaluations": 1,
        "observed": observed,
    }
    dialect = s.get_bind().dialect.name
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    # Two workers may serve one device, so this must not be a read followed by a write.
    statement = insert(DeviceHourRow).values(values)
    more = {
        "busy_s": DeviceHourRow.busy_s + statement.excluded.busy_s,
        "evaluations": DeviceHourRow.evaluations + 1,
        **({"observed": statement.excluded.observed} if observed else {}),
    }
    s.execute(statement.on_conflict_do_update(index_elements=["uuid", "hour"], set_=more))


def record_best(s: Session, run: RunRow) -> None:
    """Record a milestone if the Run's fastest Candidate or its judged speed differs from the last one."""
    best = s.get(CandidateRow, run.best_id) if run.best_id is not None else None
    if best is None or best.speedup is None or best.speedup_low is None or best.speedup_high is None:
        return
    last = s.execute(
        select(MilestoneRow.candidate_id, MilestoneRow.speedup)
        .where(MilestoneRow.run_id == run.id, MilestoneRow.confirmed.is_(False))
        .order_by(MilestoneRow.ordinal.desc())
        .limit(1)
    ).one_or_none()
    if last is None or (last.candidate_id, last.speedup) != (best.id, best.speedup):
        _add(s, run, best, (best.speedup, best.speedup_low, best.speedup_high), confirmed=False)


def record_champion(s: Session, run: RunRow, champion: CandidateRow, ratio: Ratio) -> None:
    """Record a milestone: this Candidate was confirmed at this speedup."""
    _add(s, run, champion, (ratio.value, ratio.interval.low, ratio.interval.high), confirmed=True)


def _add(
    s: Session, run: RunRow, candidate: CandidateRow, speedup: tuple[float, float, float], *, confirmed: bool
) -> None:
    s.flush()
    ordinal = s.scalars(select(func.max(MilestoneRow.ordinal)).where(MilestoneRow.run_id == run.id)).one()
    settled = s.scalars(select(func.sum(TallyRow.number)).where(TallyRow.run_id == run.id)).one()
    moment = now(s)
    s.add(
        MilestoneRow(
            run_id=run.id,
            ordinal=(ordinal or 0) + 1,
            candidate_id=candidate.id,
            number=candidate.number,
            speedup=speedup[0],
            speedup_low=speedup[1],
            speedup_high=speedup[2],
            confirmed=confirmed,
            evaluations=settled or 0,
            device_s=run.spent_device_s,
            wall_s=wall_s(run, moment),
            usd=run.spent_usd,
            at=moment,
        )
    )
    s.flush()
