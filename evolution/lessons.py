"""Lessons of a Run: the measured gain of each value of a Tunable, from matched pairs.

Two Candidates of one family (the same source) that differ in the value of one Tunable alone are a pair; the log of
their speedups' ratio is that value's gain there. A lesson is the mean over such pairs, with a 95 % interval from their
spread (Student's t), kept if the interval is clear of 1. So a lesson is evidence, not an opinion, and it names its
Workload.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evolution.tunables import Configuration, key_of

MIN_PAIRS = 3
MIN_LOG_GAIN = 0.02
"""A smaller log gain is not reported."""
MAX_LESSONS = 24
_T95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t for a two-sided 95 % interval, by degrees of freedom from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One judged Configuration: its family, and its speedup by Workload ("": over all of them)."""

    family: str
    language: str
    configuration: Configuration
    speedups: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunableLesson:
    """With `value`, kernels were `ratio` times as fast on a Workload as with the Tunable's other values, over `pairs`.

    `value` is its Python `repr`. `workload` is empty for a lesson over all Workloads.
    """

    language: str
    tunable: str
    value: str
    workload: str
    ratio: float
    low: float
    high: float
    pairs: int


def distil(trials: Sequence[Trial]) -> tuple[TunableLesson, ...]:
    """Return the lessons of a Run, by lower bound: one value for each Tunable, language and Workload."""
    found: dict[tuple[str, str, str], TunableLesson] = {}
    for (language, tunable, workload, text), logs in _match(trials).items():
        learned = _lesson(language, tunable, workload, text, logs)
        key = language, tunable, workload
        if learned is not None and (key not in found or learned.low > found[key].low):
            found[key] = learned
    ordered = sorted(found.values(), key=lambda one: (-one.low, one.language, one.tunable, one.workload))
    return tuple(ordered[:MAX_LESSONS])


def describe(one: TunableLesson) -> str:
    """Return a lesson in one line: "UNROLL = 4 ran 1.12 times (1.05 to 1.19) as fast as its other values (...)"."""
    where = f" on {one.workload}" if one.workload else ""
    return (
        f"{one.tunable} = {one.value} ran {one.ratio:.2f} times ({one.low:.2f} to {one.high:.2f}) as fast as its "
        f"other values{where} ({one.language}, {one.pairs} pairs)"
    )


def _match(trials: Sequence[Trial]) -> dict[tuple[str, str, str, str], list[float]]:
    """Return log gains over the other values of a match, by (language, Tunable, Workload, value's `repr`)."""
    matches: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        for name in trial.configuration:
            rest = key_of({n: v for n, v in trial.configuration.items() if n != name})
            matches.setdefault((trial.family, name, rest), []).append(trial)
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for (_, name, _), match in matches.items():
        for workload in sorted({w for trial in match for w in trial.speedups}):
            rates = [(t, math.log(t.speedups[workload])) for t in match if t.speedups.get(workload, 0.0) > 0]
            for trial, rate in rates:
                others = [other for one, other in rates if one.configuration[name] != trial.configuration[name]]
                if others:
                    key = trial.language, name, workload, repr(trial.configuration[name])
                    found.setdefault(key, []).append(rate - statistics.fmean(others))
    return found


def _lesson(language: str, tunable: str, workload: str, text: str, logs: Sequence[float]) -> TunableLesson | None:
    if len(logs) < MIN_PAIRS:
        return None
    mean = statistics.fmean(logs)
    times = _T95[min(len(logs) - 1, len(_T95)) - 1]
    reach = times * statistics.stdev(logs) / math.sqrt(len(logs))
    if mean - reach <= 0 or mean < MIN_LOG_GAIN:
        return None
    return TunableLesson(
        language=language,
        tunable=tunable,
        value=text,
        workload=workload,
        ratio=math.exp(mean),
        low=math.exp(mean - reach),
        high=math.exp(mean + reach),
        pairs=len(logs),
    )
