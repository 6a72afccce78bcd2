"""Judge many Candidates in a row, a tenth of them hostile: no memory, descriptor, process or file is leaked."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.cage import freezer
from evaluator.stages.judge import Judge
from evaluator.timing.protocol import Rules
from evaluator.types import Candidate, Verdict
from tests.evaluator.rooms import CPP, candidate, eager_only, forward, problem

SHORTEST = Rules(least_pairs=2, most_pairs=2, round_us=1000.0, budget_s=0.1)
HOSTILE = [
    forward("ctypes.string_at(0)"),
    forward("os._exit(0)"),
    forward("kept = bytearray(6 << 30)", "return x"),
    forward("print('x' * (1 << 22))", "return x"),
    forward("open('/tmp/left', 'wb').write(b'x' * (1 << 22))", "os.fork()", "return x"),
    forward("[threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(20)]", "return x"),
]


@pytest.fixture(autouse=True)
def _shortest_rounds(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=SHORTEST))


def held() -> tuple[int, int, int, int]:
    """Return descriptors, processes below, our files in shared places, and resident KiB of this process."""
    files = sum(1 for folder in ("/tmp", "/dev/shm") for _ in Path(folder).glob("warpwright-cage-*"))
    resident = next(
        int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return len(os.listdir("/proc/self/fd")), len(freezer.descendants(os.getpid())), files, resident  # noqa: PTH208


def one_in_a_row(index: int) -> tuple[Candidate, set[Verdict]]:
    if index % 10 == 7:
        return HOSTILE[index // 10 % len(HOSTILE)], set(Verdict) - {Verdict.PASSED, Verdict.INTERNAL_ERROR}
    if index % 10 == 3:
        return candidate(f"# {index}\n{CPP}", head=""), {Verdict.PASSED}
    wrong = ("return right(x, self.weight) * 1.01", "return x[:, :1]", "return undefined_name")
    return forward(wrong[index % 3]), {Verdict.INCORRECT_VALUES, Verdict.INCORRECT_SHAPE, Verdict.RUNTIME_ERROR}


def in_a_row(judge: Judge, count: int) -> None:
    task = problem()
    known = eager_only(judge, task)
    for index in range(12):  # what is kept on purpose (pools, comparators, allocators' memory) is there now
        judge.judge(task, one_in_a_row(index)[0], known)
    descriptors, processes, files, resident = held()
    for index in range(count):
        one, expected = one_in_a_row(index)
        found = judge.judge(task, one, known)
        assert found.verdict in expected, (index, found.verdict, found.reason)
    now = held()
    assert now[0] <= descriptors
    assert now[1] <= processes
    assert now[2] <= files
    assert now[3] < resident + 60 * 1024, (resident, now[3])


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_ten_in_a_row_leave_nothing_behind(judge: Judge) -> None:
    in_a_row(judge, 10)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_in_a_row_leave_nothing_behind(judge: Judge) -> None:
    in_a_row(judge, 1000)
