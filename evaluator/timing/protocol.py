"""The rules by which each stage of the judge times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits of one timing session. A pair is one round of every contender. Racing stops early; `confirm` does not."""

    least_pairs: int = 4
    most_pairs: int = 10
    narrow: float = 0.03
    racing: bool = True
    budget_s: float = 1.5  # of a Workload; only racing stops for it, after the least pairs
    round_us: float | None = None  # None: the device's own for a search
    discarded: int = 1  # times `most_pairs` of pairs in which a child waited for its core; later pairs count anyway
    rehearse: bool = True  # run every kind of adversarial values in rounds that do not count


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Limits of sampling a child: a time span, a number of samples or, with `until_library`, the first sample in a
    library."""

    span_s: float = 0.1
    most_samples: int = 100
    until_library: bool = False


@dataclass(frozen=True, slots=True)
class SampledContender:
    """A contender that is sampled, and the limits of that."""

    name: str
    plan: SamplingPlan


BRIEF_SAMPLING = SamplingPlan()
# A small matrix product is a fiftieth of a call; the rest is Python and dispatch around it.
LIBRARY_SAMPLING = SamplingPlan(span_s=5.0, most_samples=2000, until_library=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingProtocol:
    """The rules of every stage that times.

    A confirmation repeats each shown Workload in `process_pairs` and each held-out one in `hidden_pairs` new sets of
    processes. `sampling` is for the profile of a CPU kernel.
    """

    judge: Rules = Rules()
    baseline: Rules = Rules(least_pairs=5, most_pairs=8, narrow=0.02)
    profile: Rules = Rules(least_pairs=4, most_pairs=6)
    confirm: Rules = Rules(least_pairs=4, most_pairs=4, racing=False, round_us=10_000.0)  # both sizes in both orders
    process_pairs: int = 8
    hidden_pairs: int = 2
    sampling: SamplingPlan = SamplingPlan(span_s=3.0, most_samples=3000)
