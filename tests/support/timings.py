"""Record how long each test of a run took, and print the slowest suites and tests of the last run.

`make timings`, or `python -m tests.support.timings [COUNT]`. The record is .pytest-timings in the checkout.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.support import cpu

RECORD = Path(__file__).resolve().parents[2] / ".pytest-timings"
COUNT = 30
COLLECTION = "collection"
_CPU_S, _COLLECTION_S = "cpu_s", "collection_s"


@dataclass(slots=True)
class Timing:
    """Seconds of one test, its fixtures included, and the process that ran it.

    `cpu_s` are the processor seconds of that process and all that it started (`cpu.open_clock`). Children that a
    fixture keeps are in the test during which they worked. What a process used before its first test, to import and to
    collect, is a record of its own, `COLLECTION`.
    """

    test: str
    worker: str
    seconds: float = 0.0
    fixtures_s: float = 0.0
    cpu_s: float = 0.0


class Meter:
    """Pytest plugin of each process that runs tests: it measures the processor seconds since the test before."""

    def __init__(self) -> None:
        self._used_s = cpu.open_clock()
        self._before_s = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        if not self._before_s:
            self._before_s = self._used_s()
            item.user_properties.append((_COLLECTION_S, round(self._before_s, 3)))
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        yield
        now_s = self._used_s()
        item.user_properties.append((_CPU_S, round(now_s - self._before_s, 3)))
        self._before_s = now_s


class Recorder:
    """Pytest plugin of the process that reports: it adds the phases of each test and writes the record at the end."""

    def __init__(self) -> None:
        self._found: dict[str, Timing] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        worker = getattr(report, "worker_id", "main")
        timing = self._found.setdefault(report.nodeid, Timing(report.nodeid, worker))
        timing.seconds += report.duration
        if report.when != "call":
            timing.fixtures_s += report.duration
        if report.when == "teardown":
            used = {name: float(str(value)) for name, value in report.user_properties if name.endswith("_s")}
            timing.cpu_s += used.get(_CPU_S, 0.0)
            if _COLLECTION_S in used:
                name = f"{COLLECTION} by {worker}"
                self._found[name] = Timing(name, worker, cpu_s=used[_COLLECTION_S])

    def pytest_sessionfinish(self) -> None:
        if self._found:
            RECORD.write_text("".join(json.dumps(asdict(one)) + "\n" for one in self._found.values()), encoding="utf-8")


def read() -> list[Timing]:
    return [Timing(**json.loads(line)) for line in RECORD.read_text(encoding="utf-8").splitlines()]


def table(timings: list[Timing], count: int = COUNT) -> str:
    """Suites, workers and files with their sums, the costliest first, then the slowest tests."""
    lines = ["seconds  fixtures      cpu  tests  all, by suite, by worker, by file"]
    groups: tuple[Callable[[Timing], str], ...] = (lambda one: "all", _suite, lambda one: one.worker, _file)
    for group in groups:
        those: dict[str, list[Timing]] = defaultdict(list)
        for one in timings:
            those[group(one)].append(one)
        lines += [
            f"{_seconds(some)}  {len(some):5}  {name}"
            for name, some in sorted(those.items(), key=lambda item: -sum(one.cpu_s for one in item[1]))[:count]
        ]
    lines.append("seconds  fixtures      cpu  test")
    slowest = sorted(timings, key=lambda one: -one.seconds)[:count]
    return "\n".join(lines + [f"{_seconds([one])}  {one.test}" for one in slowest])


def _file(one: Timing) -> str:
    return one.test.partition("::")[0]


def _suite(one: Timing) -> str:
    return "/".join(Path(_file(one)).parts[:2])


def _seconds(timings: list[Timing]) -> str:
    sums = (sum(getattr(one, name) for one in timings) for name in ("seconds", "fixtures_s", "cpu_s"))
    return "{:7.1f}  {:8.1f}  {:7.1f}".format(*sums)


def main() -> int:
    if not RECORD.exists():
        print("no record of a run: make test", file=sys.stderr)
        return 2
    print(table(read(), int(sys.argv[1]) if len(sys.argv) > 1 else COUNT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
