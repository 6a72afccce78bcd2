"""The numbers that decide what "faster" means, in one value with a hash.

Results under different protocols are told apart by the hash in `Environment.protocol`. The number of a decision record
(docs/adr) stands where one explains a value.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from evaluator.types import canonical_json, content_hash

_ENOUGH_CALLS, _LEAST_ROUND_US = 12, 2_000.0  # of a round on a CPU


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits of one timing session. A pair is one round of every contender. Racing stops early; `confirm` does not."""

    least_pairs: int = 4
    most_pairs: int = 10
    narrow: float = 0.03  # half-width of the interval, as a share of the ratio, at which racing stops
    racing: bool = True
    budget_s: float = 1.5  # of a Workload; only racing stops for it, after the least pairs
    round_us: float | None = None  # None: the device's own
    discarded: int = 1  # times `most_pairs` of pairs in which a child waited for its core; later pairs count anyway
    rehearse: bool = True  # run every kind of adversarial values in rounds that do not count
    closely: bool = True  # run the integrity checks that take long, too
    patient: bool = True  # let these go on for longer where others use the cores, until they can tell
    # On a CPU every call of a round costs the judge some hundred times itself: inputs, their expected outputs. So a
    # round ends with so many calls there if it has lasted this long by then.
    enough_calls: int | None = None
    least_round_us: float = 0.0

    def length_us(self, call_us: float, most_us: float) -> float:
        """Return the length of a round of calls that take `call_us`, at most `most_us`."""
        if self.enough_calls is None:
            return most_us
        return min(most_us, max(self.least_round_us, self.enough_calls * call_us))


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Limits of sampling a child: a time span, a number of samples or, with `until_library`, the first sample in a
    library. While there are fewer than the fewest, it is sampled up to `late_s`."""

    span_s: float = 0.1
    most_samples: int = 100
    until_library: bool = False
    fewest_samples: int = 0
    late_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityMargins:
    """Differences that integrity checks allow for noise and honest kernels."""

    first_replay_us: float = 100.0  # excess of a first replay, as a time or a share of it; the larger one counts
    first_replay_share: float = 0.5
    repeated_integers: float = 0.1  # gain over the fastest comparator
    single_calls: float = 0.05  # of the comparator's time (ADR 6); caches differ in single calls of honest kernels, too
    single_calls_confidence: float = 0.99
    interpreter_share: float = 0.5  # least part of an empty call's time in the interpreter (ADR 6)
    interpreter_error: float = 1e-6  # probability of refusing a child that is there for as long
    interpreter_s: float = 2.0  # for which a child is sampled at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """Conditions under which a confirmation promotes a Candidate."""

    least_gain: float = 0.01  # or the A/A spread or the harness share, if larger (ADR 6)
    confidence: float = 0.999  # one-sided, of the bound
    worst_workload: float = 0.98  # a Workload is slower if its interval lies below this ratio
    unclear_workload: float = 0.9  # it may be slower if its ratio lies below that one, and its interval reaches here


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingProtocol:
    """The rules and numbers by which every stage times. Another value measures something else, under another hash."""

    judge: Rules = Rules(enough_calls=_ENOUGH_CALLS, least_round_us=_LEAST_ROUND_US)
    # Ends what is clearly slower before most of its checks.
    look: Rules = Rules(
        least_pairs=2, most_pairs=4, rehearse=False, enough_calls=_ENOUGH_CALLS, least_round_us=_LEAST_ROUND_US
    )
    clearly_slower: float = 0.95  # the interval of the ratio over all Workloads lies below this
    seems_faster: float = 1.02  # a larger ratio on any Workload: it may serve that one
    baseline: Rules = Rules(
        least_pairs=5, most_pairs=8, narrow=0.02, enough_calls=_ENOUGH_CALLS, least_round_us=_LEAST_ROUND_US
    )
    # While other modes still compile: all are timed together once they are there, and the first verdict waits for this.
    baseline_so_far: Rules = Rules(
        least_pairs=2, most_pairs=4, enough_calls=_ENOUGH_CALLS, least_round_us=_LEAST_ROUND_US
    )
    profile: Rules = Rules(least_pairs=4, most_pairs=6)
    # Both sizes of round in both orders.
    confirm: Rules = Rules(
        least_pairs=4, most_pairs=4, racing=False, enough_calls=_ENOUGH_CALLS, least_round_us=_LEAST_ROUND_US
    )
    # The same on a GPU for shown Workloads where the judge saw lower bounds of `surely_faster` on each, but not in the
    # repetition that is looked at closely: half as many pairs tell a gain of a fifth from none (ADR 19).
    confirm_in_brief: Rules = Rules(least_pairs=2, most_pairs=2, racing=False)
    surely_faster: float = 1.2
    process_pairs: int = 8  # repetitions of a confirmation in new processes
    hidden_pairs: int = 2  # the same of held-out Workloads
    # Repetitions with plain loops beside the official times where two of them disagree with these, and with eager where
    # it is much slower than another Baseline: a round of eager takes as long as several of the others'.
    first_pairs: int = 4
    much_slower: float = 1.3
    promotion: Promotion = field(default_factory=Promotion)
    integrity: IntegrityMargins = field(default_factory=IntegrityMargins)

    round_sizes: tuple[float, ...] = (1.0, 1.6)  # in units of the planned round; the worst median counts
    overhead_share: float = 0.1  # the largest part of a round's wall time that is taken off as overhead (ADR 6)
    plain_overhead_share: float = 0.95  # the same where no contender can reach the harness: all, but for noise
    # There a GPU's clock counts. What a round costs beside its device time differs between children: by so many times
    # the null child's at most (ADR 20).
    device_slack: float = 2.0
    harness_us: float = 20.0  # the largest cost of the harness in a call, for the least gain that is promoted (ADR 6)
    null_rounds: int = 4
    warm_up_rounds: int = 2
    refinements: int = 3  # rounds of growing size that find the time of a call
    rehearsals: int = 8  # at least, where a round replays a graph
    waited_share: float = 0.03  # share of a round's net time that a child may wait for its core

    # A small matrix product is a fiftieth of a call; the rest is Python and dispatch around it.
    library_sampling: SamplingPlan = SamplingPlan(
        span_s=5.0, most_samples=2000, until_library=True, fewest_samples=150, late_s=30.0
    )
    brief_sampling: SamplingPlan = SamplingPlan(fewest_samples=10, late_s=5.0)
    # For the profile of a CPU kernel.
    sampling: SamplingPlan = SamplingPlan(span_s=3.0, most_samples=3000)

    @property
    def hash(self) -> str:
        """The identity of the protocol's numbers."""
        return content_hash("timing protocol", canonical_json(asdict(self)))


STANDARD = TimingProtocol()
