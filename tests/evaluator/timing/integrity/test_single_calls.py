"""Calls that come one at a time: what is taken back of a gain, what is not, and what a hostile child can do there."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.cage.memory import read_process_pieces
from evaluator.child.cpu_ops import ADDRESSES, GRANTED, MADE
from evaluator.child.protocol.layout import LayoutError, TensorSpec
from evaluator.devices import cpu_single_calls
from evaluator.devices.base import EarlyRead, Round, RoundPlan, SingleCallRound
from evaluator.devices.cpu import CpuBackend
from evaluator.devices.cpu_single_calls import SingleCallGrants
from evaluator.errors import Rejection
from evaluator.stages import trial
from evaluator.stages.judge import Judge
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import RoundInputs
from evaluator.timing.integrity import single_calls
from evaluator.timing.integrity.empty_calls import EmptyCalls
from evaluator.timing.integrity.single_calls import SingleCalls
from evaluator.timing.overhead import Overhead
from evaluator.timing.protocol import STANDARD
from evaluator.types import Evaluation, Verdict
from tests.evaluator.rooms import BRIEF, CPP, HEAD, candidate, eager_only, problem
from tests.evaluator.timing.integrity.sessions import timed_session

HARNESS_US, ASKING_US = 3.0, 12.0


def contender(name: str, call_us: float, **how: Any) -> Contender:
    """One whose rounds of 100 calls took so long a call, harness included."""
    taken_off = min(HARNESS_US, call_us / 10)
    samples = {100: [call_us - taken_off] * 4}
    return Contender(name, SimpleNamespace(), suspect=name != "eager", buffers={}, samples=samples, **how)  # type: ignore[arg-type]


@dataclass
class Stand:
    """In place of `Rounds`: calls that come one at a time take as long as `singly_us` says, and what asking costs."""

    singly_us: Mapping[str, float]
    judge_has_own_core: bool = True
    able: bool = True
    early: bytes = b""
    most: int = 200
    busy: bool = False
    busy_sessions: int = 0  # the first ones
    noise_us: float = 0.0
    ran: list[str] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)
    typical: Any = field(default_factory=lambda: SimpleNamespace(reply={"list": []}))

    def __post_init__(self) -> None:
        asked = SimpleNamespace(judge_has_own_core=self.judge_has_own_core, run_single_calls=self.run_single_calls)
        self.backend = asked if self.able else SimpleNamespace()
        self.overhead = Overhead({100: 100 * HARNESS_US}, {100: 0.0})
        self.null = contender("null", HARNESS_US)

    def planned(self, call_us: float, round_us: float) -> RoundPlan:
        return RoundPlan(calls=min(self.most, math.ceil(round_us / call_us)))

    @property
    def input_maker(self) -> Any:
        return SimpleNamespace(shuffled=list)

    def new_inputs(self, count: int) -> RoundInputs:
        return RoundInputs([()] * count, [None] * count, frozenset(), None)

    repeated_inputs = new_inputs

    def run(self, who: Contender, inputs: RoundInputs, plan: RoundPlan) -> Round:
        return Round(plan=plan, wall_us=1.0, replies=[{"list": []}], outputs=[])

    def run_single_calls(self, who: Contender, inputs: RoundInputs, layouts: Sequence[TensorSpec]) -> SingleCallRound:
        self.ran.append(who.name)
        count = len(inputs.calls)
        outputs = [[torch.zeros(4)] for _ in range(count)]
        done = Round(plan=RoundPlan(calls=count), wall_us=1.0, replies=[], outputs=outputs)
        early = [EarlyRead(0, [4] if self.early else [], self.early)] * count
        first, rest = 900.0, self.singly_us.get(who.name, HARNESS_US) + ASKING_US
        noise_us = self.noise_us * (len(self.ran) % 2)
        times_us = [first, *[rest + noise_us + 0.01 * (turn % 3) for turn in range(count - 1)]]
        return SingleCallRound(done, times_us, early, [self.busy or len(self.ran) <= 3 * self.busy_sessions] * count)

    @property
    def verifier(self) -> Any:
        return SimpleNamespace(verify=lambda run: self.verified.append(run.contender.name))


def held(rounds: Stand, *contenders: Contender, calls: int = 100, patient: bool = True) -> None:
    def log_ratios(over: str, under: str) -> list[float]:
        times = {c.name: c.official_us() for c in contenders}
        return [math.log(times[over] / times[under])] * 4

    session = replace(timed_session(rounds, contenders, RoundPlan(calls=calls), log_ratios), patient=patient)
    EmptyCalls().run(session)
    SingleCalls().run(session)


def test_what_only_many_calls_at_once_save_is_added() -> None:
    """20 us a call, done in 10 us where calls come many at once, and in 20 us as everybody does where they do not."""
    eager, cheat = contender("eager", 20.0), contender("candidate", 10.0)
    raw = cheat.all_samples()
    held(rounds := Stand({"eager": 20.0, "candidate": 20.0}), eager, cheat)
    assert eager.official_us() / cheat.official_us() == pytest.approx(
        1 / (1 - STANDARD.integrity.single_calls), rel=0.01
    )
    assert cheat.single_calls["saved"] == pytest.approx(0, abs=0.001)
    assert cheat.single_calls["saved_in_rounds"] == pytest.approx(0.5)
    assert cheat.single_calls["taken_for_slower"] == pytest.approx(1.9, rel=0.01)
    assert eager.single_calls == {}
    assert cheat.all_samples() == raw
    assert [one.check for one in cheat.adjustments] == ["single_calls"]
    assert rounds.ran.count("null") == rounds.ran.count("eager") == rounds.ran.count("candidate")
    assert set(rounds.verified) == {"eager", "candidate"}


@pytest.mark.parametrize(("rounds_us", "singly_us"), [(10.0, 10.0), (6.0, 6.0), (4.0, 3.5), (10.0, 10.9)])
def test_what_single_calls_save_too_stays(rounds_us: float, singly_us: float) -> None:
    eager, honest = contender("eager", 20.0), contender("candidate", rounds_us)
    before = honest.all_samples()
    held(Stand({"eager": 20.0, "candidate": singly_us}), eager, honest)
    assert honest.single_calls["taken_for_slower"] == 1.0
    assert honest.all_samples() == before


def test_a_half_of_the_gain_is_taken_back_where_half_of_it_is_not_there() -> None:
    eager, cheat = contender("eager", 20.0), contender("candidate", 8.0)
    held(Stand({"eager": 20.0, "candidate": 14.0}), eager, cheat)
    assert cheat.official_us() / eager.official_us() == pytest.approx(0.7 - STANDARD.integrity.single_calls, rel=0.01)


def test_nobody_is_made_slower_than_the_comparator() -> None:
    eager, unlucky = contender("eager", 20.0), contender("candidate", 10.0)
    held(Stand({"eager": 20.0, "candidate": 60.0}), eager, unlucky)
    assert unlucky.official_us() <= eager.official_us()


def test_a_call_takes_no_less_than_one_of_nothing() -> None:
    """Even where single calls save as much, since the harness's loop was replaced there, too."""
    eager, cheat = contender("eager", 20.0), contender("candidate", 0.5)
    held(Stand({"eager": 20.0, "candidate": -3.0}), eager, cheat)
    assert cheat.official_us() == pytest.approx(0.9 * HARNESS_US)


@pytest.mark.parametrize("how", [{"plain": True}, {"call_us": 19.5}])
def test_nobody_is_asked_for_single_calls_without_need(how: dict[str, Any]) -> None:
    """Contenders that cannot reach the harness, or are hardly faster."""
    eager, other = contender("eager", 20.0), contender("candidate", **{"call_us": 10.0, **how})
    before = other.all_samples()
    held(rounds := Stand({}), eager, other)
    assert (rounds.ran, other.single_calls, other.all_samples()) == ([], {}, before)


def test_only_who_is_doubted_is_asked() -> None:
    parts = [contender("eager", 20.0), contender("candidate", 19.5), contender("champion", 10.0)]
    held(rounds := Stand({"eager": 20.0, "champion": 10.0}), *parts)
    assert set(rounds.ran) == {"eager", "champion", "null"}


def test_other_devices_and_lone_candidates_are_let_be() -> None:
    for parts, able in (("eager candidate", False), ("candidate", True)):
        contenders = [contender(name, 20.0 if name == "eager" else 1.0) for name in parts.split()]
        held(rounds := Stand({}, able=able), *contenders)
        assert rounds.ran == []
        assert contenders[-1].official_us() == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("stand", "why"),
    [
        (Stand({}, judge_has_own_core=False), "share a core"),
        (Stand({}, busy=True), "others used the judge's or the kernel's core in nearly all"),
        (Stand({}, noise_us=400.0), "differ too much to tell"),
    ],
)
def test_what_cannot_be_looked_at_is_told(stand: Stand, why: str) -> None:
    """Such a kernel passes with its times as they are, but is not promoted."""
    eager, other = contender("eager", 20.0), contender("candidate", 10.0)
    held(stand, eager, other)
    assert other.official_us() == pytest.approx(9.0)
    assert other.single_calls.get("taken_for_slower", 1.0) == 1.0
    assert why in other.unchecked["single_calls"]


def test_what_others_disturb_is_looked_at_again() -> None:
    eager, other = contender("eager", 20.0), contender("candidate", 10.0)
    held(rounds := Stand({"eager": 20.0, "candidate": 10.0}, busy_sessions=40), eager, other)
    assert len(rounds.ran) > 3 * 40
    assert (other.unchecked, other.single_calls["taken_for_slower"]) == ({}, 1.0)


def test_a_search_does_not_look_again_at_what_others_disturb() -> None:
    eager, other = contender("eager", 20.0), contender("candidate", 10.0)
    held(rounds := Stand({"eager": 20.0, "candidate": 10.0}, busy_sessions=40), eager, other, patient=False)
    assert len(rounds.ran) < 3 * 40
    assert "single_calls" in other.unchecked


def test_long_calls_are_looked_at_in_few_sessions() -> None:
    """Weights that do not fit into a cache are read once for several calls at once."""
    eager, cheat = contender("eager", 400_000.0), contender("candidate", 100_000.0)
    held(rounds := Stand({"eager": 400_000.0, "candidate": 400_000.0}), eager, cheat)
    assert rounds.ran.count("candidate") == single_calls._FEWEST_SESSIONS
    assert cheat.single_calls["taken_for_slower"] > 3


def test_a_round_of_one_call_holds_nothing_to_do_at_once() -> None:
    eager, other = contender("eager", 40_000.0), contender("candidate", 20_000.0)
    held(rounds := Stand({}), eager, other, calls=1)
    assert (rounds.ran, other.unchecked) == ([], {})


@pytest.mark.parametrize("name", ["candidate", "again"])
def test_an_output_that_was_not_complete_is_refused(name: str) -> None:
    """Of a Candidate's second process, of which one call is read, nothing is compared."""
    eager, cheat = contender("eager", 20.0), contender(name, 10.0, sampled=name == "again")
    rounds = Stand({"eager": 20.0, name: 5.0}, early=b"\x00\x00\x00\x01")
    if name == "again":
        held(rounds, eager, cheat)
        return
    with pytest.raises(Rejection) as found:
        held(rounds, eager, cheat)
    assert found.value.verdict is Verdict.INCORRECT_VALUES
    assert found.value.evidence["check"] == "complete_output"


# ------------------------------------------------------------ the judge's side of a turn


def grants_of(
    inputs: Sequence[torch.Tensor], output: torch.Tensor, written: list[int], **limits: int
) -> SingleCallGrants:
    child, staged = SimpleNamespace(pid=os.getpid()), SimpleNamespace(write_call=lambda turn, _: written.append(turn))
    calls, layouts = [[x] for x in inputs], [TensorSpec.of(output)]
    return SingleCallGrants(child, staged, calls, layouts, **limits)  # type: ignore[arg-type]


def test_a_turn_is_granted_once_and_timed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that takes its grant back does not make the clock start again."""
    clock = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(cpu_single_calls.time, "perf_counter_ns", lambda: next(clock))
    output, written = torch.arange(6.0).reshape(2, 3), []
    with grants_of([torch.zeros(3), torch.ones(3)], output, written, patience_ns=0) as turns:
        turns()
        assert (turns._words[GRANTED], written, turns.times_us) == (1, [0], [])
        turns._words[GRANTED] = 0
        turns()
        assert written == [0]
        turns._words[ADDRESSES], turns._words[MADE] = output.data_ptr(), 1
        turns()
        assert turns.times_us == [5.0]  # six looks at the clock: of the first turn, not of the last
        turns._words[MADE] = 2
        turns()
        turns()
        assert written == [0, 1]
        assert len(turns.times_us) == len(turns.early) == 2
    raw = output.numpy().tobytes()
    for early in turns.early:
        assert early.data == b"".join(raw[offset : offset + 4] for offset in early.offsets)


@pytest.mark.parametrize("address", [0, -1, 8])
def test_an_output_that_lies_nowhere_is_a_false_claim(address: int) -> None:
    with grants_of([torch.zeros(3)], torch.zeros(3), []) as turns:
        turns._words[ADDRESSES], turns._words[MADE] = address, 1
        with pytest.raises(LayoutError, match="no memory"):
            turns()


def test_nothing_is_read_of_outputs_without_elements() -> None:
    with grants_of([torch.zeros(3)], torch.zeros(0, 4), []) as turns:
        turns._words[MADE] = 1
        turns()
    assert turns.early == [EarlyRead(0, [], b"")]
    assert read_process_pieces(os.getpid(), [], 4) == b""


# ------------------------------------------------------------ children

SINGLY = """
import mmap
harness = sys.modules["evaluator.child.ops"]
rounds = harness.OPS["cpu_round"].__self__


def run_singly(request, fds):
    words = memoryview(mmap.mmap(fds[0], 4096)).cast("q")
    model, outputs = harness._session.call, rounds._outputs
    for turn, arguments in enumerate(rounds._arguments, 1):
        while words[0] < turn:
            pass
{body}
        words[1] = turn
    return {{"outputs": [harness._session._output(y) for y in outputs]}}


harness.OPS["cpu_singles"] = run_singly


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
"""


def judged(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, source: str, head: str = HEAD, limit_s: float = 3.0
) -> Evaluation:
    """Judge a kernel that is asked for single calls whatever its time."""
    margins = replace(judge.protocol.integrity, single_calls=-1e9)
    rules = replace(BRIEF, closely=True)
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=rules, integrity=margins))
    monkeypatch.setattr(trial, "first_call_limit_s", lambda _: limit_s)
    task = problem()
    return judge.judge(task, candidate(source, head=head), eager_only(judge, task))


def test_an_honest_kernel_makes_single_calls(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last call of each round is made and told between two looks, as on a busy machine, where it may take longer
    than a look does."""
    look = SingleCallGrants.__call__

    def late(self: SingleCallGrants) -> None:
        last = len(self.times_us) == len(self._calls) - 1 and self._granted == len(self._calls)
        if not last or self._child._frozen is not None:
            look(self)

    monkeypatch.setattr(SingleCallGrants, "__call__", late)
    found = judged(judge, monkeypatch, CPP, head="")
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)
    (measured,) = found.measurements
    told = measured.diagnostics["single_calls"]
    assert told["calls"] >= single_calls._FEWEST_PAIRS
    assert told["against"] == "eager"
    assert 0 < told["null_median_us"] < told["median_us"]
    (adjustment,) = (one for one in measured.adjustments if one.check == "single_calls")
    assert round(adjustment.factor, 4) == told["taken_for_slower"]  # the margin is far below zero
    assert measured.median_us > 50 * max(measured.samples_us)
    assert isinstance(judge.backend, CpuBackend)


BEFORE = """        y = torch.zeros_like(arguments[0])
        words[2] = y.data_ptr()
        words[1] = turn
        while turn < len(rounds._arguments) and words[0] <= turn:
            pass
        time.sleep(0.002)
        outputs.append(y.copy_(model(*arguments)))"""
NOWHERE = """        outputs.append(model(*arguments))
        words[2] = 64"""
ALL_AT_ONCE = """        outputs += [model(*each) for each in rounds._arguments]
        break"""
NEVER = """        time.sleep(60)"""
RAISES = """        raise ValueError("not singly")"""


@pytest.mark.parametrize(
    ("body", "verdict", "words"),
    [
        (BEFORE, Verdict.INCORRECT_VALUES, "before its output was complete"),
        (NOWHERE, Verdict.RUNTIME_ERROR, "no memory at the address"),
        (ALL_AT_ONCE, Verdict.RUNTIME_ERROR, "done before its calls were"),
        (NEVER, Verdict.TIMEOUT, "not done within"),
        (RAISES, Verdict.RUNTIME_ERROR, "not singly"),
    ],
)
def test_a_child_that_does_not_keep_to_its_turns(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, body: str, verdict: Verdict, words: str
) -> None:
    limit_s = 1.0 if verdict is Verdict.TIMEOUT else 3.0
    found = judged(judge, monkeypatch, SINGLY.format(body=body), limit_s=limit_s)
    assert found.verdict is verdict, (found.reason, found.evidence)
    assert words in found.reason
