"""Evaluations and Baseline reports as rows: JSON without samples, and the samples as packed float64."""

from __future__ import annotations

import dataclasses
import struct

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.tables.core import SampleRow
from evaluator.schema import from_json, to_json
from evaluator.types import BaselineReport, BaselineTime, Evaluation, Measurement

# A Measurement must have a sample, so a stored body carries its median in place of the samples.


def pack(samples_us: tuple[float, ...]) -> bytes:
    """Pack microseconds as little-endian float64, eight bytes each."""
    return struct.pack(f"<{len(samples_us)}d", *samples_us)


def unpack(data: bytes) -> tuple[float, ...]:
    """Reverse `pack`."""
    return struct.unpack(f"<{len(data) // 8}d", data)


def clean(text: str) -> str:
    """Remove what PostgreSQL or UTF-8 refuses: NUL characters and lone surrogates."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def _series(time: BaselineTime) -> str:
    return f"{time.mode}/{time.clock.value}"[:100]


def _strip(time: BaselineTime) -> BaselineTime:
    return dataclasses.replace(time, samples_us=())


def _keep(s: Session, owner_id: str, workload: str, series: str, samples_us: tuple[float, ...]) -> None:
    if samples_us:
        s.merge(SampleRow(owner_id=owner_id, workload=workload, series=series, data=pack(samples_us)))


def store_evaluation(s: Session, evaluation_id: str, evaluation: Evaluation) -> dict[str, object]:
    """Write the samples and return the body to store."""
    measurements = []
    for m in evaluation.measurements:
        _keep(s, evaluation_id, m.workload, "", m.samples_us)
        for time in m.baselines:
            _keep(s, evaluation_id, m.workload, _series(time), time.samples_us)
        stripped = tuple(_strip(time) for time in m.baselines)
        measurements.append(dataclasses.replace(m, samples_us=(m.median_us,), baselines=stripped))
    body: dict[str, object] = to_json(dataclasses.replace(evaluation, measurements=tuple(measurements)))
    return body


def load_evaluations(s: Session, bodies: dict[str, dict[str, object]], *, samples: bool = True) -> list[Evaluation]:
    """Return Evaluations by id, in the given order, with their samples unless `samples` is false."""
    found: dict[tuple[str, str, str], tuple[float, ...]] = {}
    if samples and bodies:
        rows = s.scalars(select(SampleRow).where(SampleRow.owner_id.in_(bodies)))
        found = {(row.owner_id, row.workload, row.series): unpack(row.data) for row in rows}
    evaluations = []
    for owner_id, body in bodies.items():
        evaluation = from_json(Evaluation, body)
        whole = tuple(_whole(m, owner_id, found) for m in evaluation.measurements)
        evaluations.append(dataclasses.replace(evaluation, measurements=whole))
    return evaluations


def _whole(m: Measurement, owner_id: str, found: dict[tuple[str, str, str], tuple[float, ...]]) -> Measurement:
    return dataclasses.replace(
        m,
        samples_us=found.get((owner_id, m.workload, ""), m.samples_us),
        baselines=tuple(
            dataclasses.replace(time, samples_us=found.get((owner_id, m.workload, _series(time)), ()))
            for time in m.baselines
        ),
    )


def store_baseline(s: Session, baseline_id: str, report: BaselineReport) -> dict[str, object]:
    """Write the samples and return the body to store."""
    for time in report.times:
        _keep(s, baseline_id, time.workload, _series(time), time.samples_us)
    body: dict[str, object] = to_json(dataclasses.replace(report, times=tuple(_strip(t) for t in report.times)))
    return body


def load_baseline(body: dict[str, object]) -> BaselineReport:
    """Return a report without its samples, which serve charts and not decisions."""
    return from_json(BaselineReport, body)
