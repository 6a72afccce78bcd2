"""Confirming: the same kernel under another name is not promoted; and the promotion rule itself."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

import pytest

from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge
from evaluator.stages.promotion import decide, unchecked_in_words
from evaluator.stages.trial import Trial
from evaluator.timing.protocol import STANDARD
from evaluator.types import Candidate, Verdict, Workload
from tests.evaluator.rooms import CPP, candidate, eager_only, forward, problem

ONE = Workload(name="a")


def test_an_identical_kernel_is_not_promoted(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    order, notes = [], []
    monkeypatch.setattr(judge, "tell", lambda **note: notes.append(note) if note["stage"] == "confirm" else None)

    @contextmanager
    def beside() -> Iterator[None]:
        order.append("others may use the device")
        yield
        order.append("alone")

    started = judge.children.start
    monkeypatch.setattr(judge.session.sharing, "released", beside)
    monkeypatch.setattr(judge.children, "start", lambda *how: [started(*how), order.append("start")][0])
    task = problem()
    champion = candidate(CPP, head="")
    again = candidate("# the same once more\n" + CPP, head="")
    found = confirm(judge, task, again, champion, eager_only(judge, task))
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)
    assert found.evidence["promote"] is False
    assert found.evidence["third_opinion"]["small"].keys() == {"candidate", "champion", "eager"}
    assert "'odd'" not in str(found.evidence)  # the held-out workload
    assert [m.workload for m in found.measurements] == ["small"]
    assert {r.against for r in found.speedups} == {"eager", "fastest", "champion"}
    assert any(words in found.reason for words in ("is asked", "differed by", "a faster harness")), found.reason
    assert found.evidence["confirm"]["why_not"]
    told = [
        (one["step"], one.get("workload"), one.get("pair"), one.get("done"), one.get("total"))
        for one in notes
        if one["stage"] == "confirm"
    ]
    expected = [
        ("check", None, None, None, None),
        *[("time", "small", n + 1, n, 3) for n in range(2)],
        ("time", "", 1, 2, 3),
    ]
    # By chance one kernel in forty is surely slower than itself: then nothing turns on the held-out workload.
    assert told in (expected, expected[:-1])
    # Two are checked; then three are started for the first pair of a workload, and two for the second, whose other
    # process with the same kernel is the first pair's.
    first, second = (["others may use the device", *["start"] * count, "alone"] for count in (3, 2))
    assert order == ["start", "start", *chain.from_iterable([first, second, first][: len(told) - 1])]


def test_what_is_surely_slower_gets_fewer_processes(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, process_pairs=6, first_pairs=2))
    told = []
    monkeypatch.setattr(judge, "tell", lambda **note: told.append(note["workload"]) if "pair" in note else None)
    task, slow = problem(), forward("for _ in range(40): right(x, self.weight)", "return right(x, self.weight)")
    found = confirm(judge, task, slow, candidate(CPP, head=""), eager_only(judge, task))
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)
    pairs = found.evidence["confirm"]["process_pairs"]
    assert not found.evidence["promote"]
    assert 2 <= pairs < 6, "two are sure on a quiet machine"
    assert found.reason.startswith("right on every check; 0.")
    assert "it was surely slower on small before its time was over, and got no more" in found.reason
    assert told == ["small"] * pairs, "a held-out workload would change nothing"


@pytest.mark.usefixtures("workloads_alone")
def test_only_what_this_judge_saw_much_faster_is_surely_faster(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    task, fast, other = problem(), candidate(CPP), candidate("# another\n" + CPP, head="")
    report = eager_only(judge, task)

    def seems_sure(least: float, one: Candidate, champion: Candidate | None = None) -> bool:
        monkeypatch.setattr(judge, "protocol", replace(judge.protocol, surely_faster=least))
        return judge.surely_faster(Trial(problem=task, candidate=one, kind=judge.backend.kind, champion=champion))

    found = judge.judge(task, fast, report)
    lows = [one.interval.low for one in found.speedups if one.against == "fastest" and one.workload is not None]
    assert seems_sure(min(lows) - 0.01, fast)
    assert not seems_sure(min(lows) + 0.01, fast)
    assert not seems_sure(min(lows) - 0.01, fast, champion=other), "it may hardly gain over the champion"
    assert not seems_sure(0.01, other), "it was never judged"


def _logs(generator: random.Random, gain: float, noise: float) -> list[float]:
    return [math.log(gain) + generator.gauss(0, noise) for _ in range(STANDARD.process_pairs)]


def test_a_clear_gain_is_promoted_and_luck_is_not() -> None:
    generator = random.Random(1)
    for _ in range(200):
        again = [(ONE, _logs(generator, 1.0, 0.01))]
        assert decide([(ONE, _logs(generator, 1.5, 0.01))], again).promote
        assert not decide([(ONE, _logs(generator, 1.0, 0.01))], again).promote


def test_a_gain_within_the_harness_or_a_loss_on_held_out_data_forbids_promotion() -> None:
    generator = random.Random(3)
    hidden = Workload(name="secret", held_out=True)
    again = [(ONE, _logs(generator, 1.0, 0.001))]
    gain = [(ONE, _logs(generator, 1.1, 0.001))]
    assert decide(gain, again).why_not == ()
    within = decide(gain, again, (), [0.2])
    assert not within.promote
    assert "because a faster harness could save 20.0 % of its time" in within.why_not[0]
    found = decide(gain, again, [(hidden, _logs(generator, 0.9, 0.001))])
    assert not found.promote
    assert found.worse_workloads == ("a held-out workload",)
    assert found.why_not == ("it is slower on a held-out workload",), "neither its name nor its ratio"


def test_a_workload_that_got_worse_forbids_promotion() -> None:
    generator = random.Random(2)
    worse = Workload(name="b")
    again = [(ONE, _logs(generator, 1.0, 0.001)), (worse, _logs(generator, 1.0, 0.001))]
    found = decide([(ONE, _logs(generator, 2.0, 0.001)), (worse, _logs(generator, 0.9, 0.001))], again)
    assert found.bound > found.threshold
    assert not found.promote
    assert found.why_not == (f"it is slower on b at {found_ratio(found.why_not)}x; no workload may be below 0.98x",)


def test_what_may_be_slower_is_not_promoted_unseen() -> None:
    """The interval of two repetitions that differ holds everything; so does that of a kernel that dawdles at random."""
    generator = random.Random(5)
    hidden, again = Workload(name="secret", held_out=True), [(ONE, _logs(generator, 1.0, 0.001))]
    gain = [(ONE, _logs(generator, 1.5, 0.001))]
    found = decide(gain, again, [(hidden, [math.log(0.6), math.log(0.7)])])
    assert found.why_not == (
        "it could not be measured whether it is slower on a held-out workload: its times vary too much",
    )
    assert decide(gain, again, [(hidden, [math.log(0.97), math.log(0.972)] * 4)]).why_not == (
        "it is slower on a held-out workload",
    )
    assert decide(gain, again, [(hidden, [math.log(1.1), math.log(1.6)])]).promote
    shown = Workload(name="b")
    both = [*gain, (shown, [math.log(0.7), math.log(1.2)] * 4)]
    (why,) = decide(both, [*again, (shown, [0.0, 0.0001] * 4)]).why_not[-1:]
    assert why.startswith("it could not be measured whether it is slower on b: 0.")


def test_checks_that_could_not_look_are_told_with_the_workloads() -> None:
    few = "only 3 of 30 samples"
    found = {"a": {"own_loops": few}, "b": {"own_loops": few, "libraries": "no samples"}, "c": {}}
    assert unchecked_in_words(found) == [
        f"whether our loop makes its calls could not be checked on a, b: {few}",
        "whether it calls libraries, which the problem forbids, could not be checked on b: no samples",
    ]


def found_ratio(why_not: tuple[str, ...]) -> str:
    return why_not[0].partition("slower on b at ")[2].partition("x")[0]


def test_words_name_the_bound_what_is_asked_and_why() -> None:
    generator = random.Random(4)
    quiet, noisy = [(ONE, _logs(generator, 1.0, 0.0001))], [(ONE, [0.03, -0.03] * 4)]
    small = decide([(ONE, [math.log(1.004)] * 8)], quiet, name="the champion")
    assert small.why_not == (
        "1.004x the champion was measured, but only 1.004x is sure (99.9 %); more than 1.010x is asked",
    )
    assert small.evidence()["why_not"] == small.why_not
    among = decide([(ONE, _logs(generator, 1.01, 0.0001))], noisy)
    assert among.why_not[0].endswith("because two processes with this kernel differed by 2.3 %"), among.why_not
