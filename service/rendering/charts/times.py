"""Times of one Workload on a common scale, and their distance from the Roofline floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.types import BaselineTime, Evaluation, Interval, Measurement, Ratio, WorkloadFacts
from service.rendering.charts.lines import IntervalBar, log_bar


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBar:
    """One bar: the kernel (`mode` is "") or a Baseline. `ratio` is the kernel's speedup over that Baseline.

    `gbs` is the rate at which it moves the bytes of a call.
    """

    mode: str
    median_us: float
    interval: Interval
    bar: IntervalBar
    fastest: bool
    samples: int
    ratio: Ratio | None
    gbs: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTimes:
    """One Workload: the kernel first, then the Baselines, fastest first. `share` is floor over median, 0 to 1."""

    name: str
    held_out: bool
    clock: str
    floor_us: float | None
    share: float | None
    bars: tuple[TimeBar, ...]
    adjusted: str
    ratio: Ratio | None
    roof_gbs: float | None
    bytes_moved: int | None
    flops: int | None
    roof_gflops: float | None


def adjusted(m: Measurement) -> str:
    """Return the kernel's Adjustments in words; "" without any."""
    return "; ".join(dict.fromkeys(map(str, m.adjustments)))


def workload_times(
    evaluation: Evaluation, held_out: set[str], facts: Sequence[WorkloadFacts] = ()
) -> tuple[WorkloadTimes, ...]:
    """Return every timed Workload of an Evaluation."""
    known = {fact.workload: fact for fact in facts}
    ratios = {(ratio.against, ratio.workload): ratio for ratio in evaluation.speedups}
    return tuple(_one(m, m.workload in held_out, ratios, known.get(m.workload)) for m in evaluation.measurements)


def _one(
    m: Measurement, held_out: bool, ratios: dict[tuple[str, str | None], Ratio], fact: WorkloadFacts | None
) -> WorkloadTimes:
    bytes_moved = fact.bytes_moved if fact is not None else None
    times = sorted(m.baselines, key=lambda time: time.median_us)
    shown = [m.median_us, *(time.median_us for time in times)]
    bottom = 0.7 * min(*shown, m.floor_us or m.median_us, m.median_us)
    top = 1.4 * max(shown)

    def contestant(mode: str, one: Measurement | BaselineTime, fastest: bool) -> TimeBar:
        reach = one.interval_us

        def rate(us: float) -> float | None:
            return bytes_moved / us / 1000 if bytes_moved and us > 0 else None

        return TimeBar(
            mode=mode,
            median_us=one.median_us,
            interval=reach,
            bar=log_bar(reach.low, one.median_us, reach.high, bottom=bottom, top=top, one=m.floor_us or bottom),
            fastest=fastest,
            samples=len(one.samples_us),
            ratio=ratios.get((mode, m.workload)) if mode else None,
            gbs=rate(one.median_us),
        )

    return WorkloadTimes(
        name=m.workload,
        held_out=held_out,
        clock=m.clock.value,
        floor_us=m.floor_us,
        share=min(1.0, m.floor_us / m.median_us) if m.floor_us else None,
        bars=(
            contestant("", m, False),
            *(contestant(time.mode, time, index == 0) for index, time in enumerate(times)),
        ),
        adjusted=adjusted(m),
        ratio=ratios.get(("fastest", m.workload)),
        roof_gbs=bytes_moved / m.floor_us / 1000 if bytes_moved and m.floor_us else None,
        bytes_moved=bytes_moved,
        flops=fact.flops if fact is not None else None,
        roof_gflops=fact.matmul_gflops if fact is not None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Raw samples of one series as points of a strip from 0 to 100."""

    label: str
    points: tuple[float, ...]
    samples_us: tuple[float, ...]
    median: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    """The raw samples of one Workload on a common scale that begins at zero."""

    workload: str
    top_us: float
    rows: tuple[Strip, ...]
    adjusted: str


MOST_POINTS = 400


def strips(m: Measurement) -> Strips:
    """Place the kernel's samples above those of every Baseline of the same session."""
    series = [("this kernel", m.samples_us, m.median_us), *((b.mode, b.samples_us, b.median_us) for b in m.baselines)]
    top = max((us for _, samples, median in series for us in (*samples, median)), default=1.0) * 1.05

    def row(label: str, samples: tuple[float, ...], median: float) -> Strip:
        points = tuple(round(100 * us / top, 2) for us in samples[:MOST_POINTS])
        return Strip(label=label, points=points, samples_us=samples, median=round(100 * median / top, 2))

    return Strips(workload=m.workload, top_us=top, rows=tuple(row(*one) for one in series), adjusted=adjusted(m))


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One Workload under one of its roofs, as positions from 0 to 100 of a scale of rates from zero.

    `kind` is "bytes" (GB/s, under what a plain copy reaches) or "arithmetic" (GFLOP/s, under what a large product of
    matrices of its type reaches). `nearest`: of the Workload's roofs this is the one that the kernel is nearest to.
    """

    workload: str
    kind: str
    unit: str
    rate: float
    limit: float
    roof: float
    low: float
    middle: float
    high: float
    baselines: tuple[tuple[str, float], ...]
    nearest: bool


def rooflines(times: Sequence[WorkloadTimes]) -> tuple[Roof, ...]:
    """Place the kernel and its Baselines under both roofs; unknown values of a Workload are left out."""
    found: list[Roof] = []
    for one in times:
        per_us = (
            ("bytes", "GB/s", one.bytes_moved, one.roof_gbs),
            ("arithmetic", "GFLOP/s", one.flops, one.roof_gflops),
        )
        known = [(kind, unit, work, limit) for kind, unit, work, limit in per_us if work and limit]
        kernel_us = one.bars[0].median_us
        shares = {kind: work / kernel_us / 1000 / limit for kind, _, work, limit in known}
        for kind, unit, work, limit in known:
            nearest = len(known) > 1 and shares[kind] == max(shares.values())
            found.append(_roof(one, kind, unit, work, limit, nearest=nearest))
    return tuple(found)


def _roof(one: WorkloadTimes, kind: str, unit: str, work: int, limit: float, *, nearest: bool) -> Roof:
    """Build a roof: work in bytes or operations a call, the limit in 1e9 of them a second."""
    top = 1.08 * max(limit, *(work / c.median_us / 1000 for c in one.bars))

    def position(us: float) -> float:
        return round(100 * min(1.0, work / us / 1000 / top), 2)

    kernel = one.bars[0]
    return Roof(
        workload=one.name,
        kind=kind,
        unit=unit,
        rate=work / kernel.median_us / 1000,
        limit=limit,
        roof=round(100 * limit / top, 2),
        low=position(kernel.interval.high),
        middle=position(kernel.median_us),
        high=position(kernel.interval.low),
        baselines=tuple((c.mode, position(c.median_us)) for c in one.bars[1:]),
        nearest=nearest,
    )
