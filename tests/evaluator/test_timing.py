"""When a graph's first replays look wrong, everything is timed once more before anybody is refused."""

from __future__ import annotations

import pytest

from evaluator.errors import Rejection
from evaluator.timing import Bench
from evaluator.types import Stage, Verdict
from tests.evaluator.rooms import CPP, candidate, eager_only, problem


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_suspected_of_skipping_work_it_is_timed_again(judge, monkeypatch, times):
    looks: list[int] = []

    def first_replays(bench: Bench) -> Rejection | None:
        looks.append(bench.pairs)
        if len(looks) <= times:
            return Rejection(Verdict.REWARD_HACK, Stage.TIMING, "work is skipped", check="first_replay")
        return None

    monkeypatch.setattr(Bench, "_first_replays", first_replays)
    task = problem()
    found = judge.judge(task, candidate(CPP), eager_only(judge, task))
    assert len(looks) == 2
    if times == 1:
        assert found.verdict is Verdict.PASSED, found.reason
        (measured,) = found.measurements
        assert measured.diagnostics["pairs"] == looks[1]
        assert len(measured.samples_us) == looks[1]  # nothing of the first time counts
    else:
        assert found.verdict is Verdict.REWARD_HACK
        assert found.evidence["check"] == "first_replay"
