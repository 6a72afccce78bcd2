"""Times of one Workload side by side on a common scale, and how near the Roofline floor they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.types import BaselineTime, Evaluation, Interval, Measurement, Ratio, WorkloadFacts
from service.pages.charts import IntervalBar, log_bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One bar: the kernel (`mode` is "") or a Baseline. `ratio` is the kernel's speedup over that Baseline."""

    mode: str
    median_us: float
    interval: Interval
    bar: IntervalBar
    fastest: bool
    samples: int
    ratio: Ratio | None
    gbs: float | None
    gbs_low: float | None
    gbs_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTimes:
    """One Workload: the kernel first, then the Baselines, fastest first. `share` is floor over median, 0 to 1."""

    name: str
    held_out: bool
    clock: str
    floor_us: float | None
    share: float | None
    contestants: tuple[Contestant, ...]
    ratio: Ratio | None
    roof_gbs: float | None


def workload_times(
    evaluation: Evaluation, held_out: set[str], facts: Sequence[WorkloadFacts] = ()
) -> tuple[WorkloadTimes, ...]:
    """Every timed Workload of an Evaluation."""
    moved = {fact.workload: fact.bytes_moved for fact in facts}
    ratios = {(ratio.against, ratio.workload): ratio for ratio in evaluation.speedups}
    return tuple(_one(m, m.workload in held_out, ratios, moved.get(m.workload)) for m in evaluation.measurements)


def _one(
    m: Measurement, held_out: bool, ratios: dict[tuple[str, str | None], Ratio], bytes_moved: int | None
) -> WorkloadTimes:
    times = sorted(m.baselines, key=lambda time: time.median_us)
    shown = [m.median_us, *(time.median_us for time in times)]
    bottom = 0.7 * min(*shown, m.floor_us or m.median_us, m.median_us)
    top = 1.4 * max(shown)

    def contestant(mode: str, one: Measurement | BaselineTime, fastest: bool) -> Contestant:
        reach = one.interval_us

        def rate(us: float) -> float | None:
            return bytes_moved / us / 1000 if bytes_moved and us > 0 else None

        return Contestant(
            mode=mode,
            median_us=one.median_us,
            interval=reach,
            bar=log_bar(reach.low, one.median_us, reach.high, bottom=bottom, top=top, one=m.floor_us or bottom),
            fastest=fastest,
            samples=len(one.samples_us),
            ratio=ratios.get((mode, m.workload)) if mode else None,
            gbs=rate(one.median_us),
            gbs_low=rate(reach.high),
            gbs_high=rate(reach.low),
        )

    return WorkloadTimes(
        name=m.workload,
        held_out=held_out,
        clock=m.clock.value,
        floor_us=m.floor_us,
        share=min(1.0, m.floor_us / m.median_us) if m.floor_us else None,
        contestants=(
            contestant("", m, False),
            *(contestant(time.mode, time, index == 0) for index, time in enumerate(times)),
        ),
        ratio=ratios.get(("fastest", m.workload)),
        roof_gbs=bytes_moved / m.floor_us / 1000 if bytes_moved and m.floor_us else None,
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


MOST_POINTS = 400


def strips(m: Measurement) -> Strips:
    """The kernel's samples above those of every Baseline of the same session."""
    series = [("this kernel", m.samples_us, m.median_us), *((b.mode, b.samples_us, b.median_us) for b in m.baselines)]
    top = max((us for _, samples, median in series for us in (*samples, median)), default=1.0) * 1.05

    def row(label: str, samples: tuple[float, ...], median: float) -> Strip:
        points = tuple(round(100 * us / top, 2) for us in samples[:MOST_POINTS])
        return Strip(label=label, points=points, samples_us=samples, median=round(100 * median / top, 2))

    return Strips(workload=m.workload, top_us=top, rows=tuple(row(*one) for one in series))


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One Workload under its memory roof, as positions from 0 to 100 of a common scale of GB/s from zero."""

    workload: str
    gbs: float
    roof_gbs: float
    roof: float
    low: float
    middle: float
    high: float
    baselines: tuple[tuple[str, float], ...]


def roofline(times: Sequence[WorkloadTimes]) -> tuple[Roof, ...]:
    """Where the kernel and its Baselines lie under the roof; none where the bytes of a Workload are not known."""
    known = [one for one in times if one.roof_gbs is not None and one.contestants[0].gbs is not None]
    top = 1.08 * max((max(one.roof_gbs or 0.0, *(c.gbs or 0.0 for c in one.contestants)) for one in known), default=1.0)

    def position(gbs: float | None) -> float:
        return round(100 * min(1.0, (gbs or 0.0) / top), 2)

    return tuple(
        Roof(
            workload=one.name,
            gbs=one.contestants[0].gbs or 0.0,
            roof_gbs=one.roof_gbs or 0.0,
            roof=position(one.roof_gbs),
            low=position(one.contestants[0].gbs_low),
            middle=position(one.contestants[0].gbs),
            high=position(one.contestants[0].gbs_high),
            baselines=tuple((c.mode, position(c.gbs)) for c in one.contestants[1:]),
        )
        for one in known
    )
