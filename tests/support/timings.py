"""Record how long each test of a run took, and print the slowest suites and tests of the last run.

`make timings`, or `python -m tests.support.timings [COUNT]`. The record is .pytest-timings in the checkout.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.support import cpu

RECORD = Path(__file__).resolve().parents[2] / ".pytest-timings"
COUNT = 30
_CPU_S = "cpu_s"


@dataclass(slots=True)
class Timing:
    """Seconds of one test, its fixtures included, and the process that ran it.

    `cpu_s` are the processor seconds of that process and all below it. Children that a fixture keeps are in the test
    during which they worked.
    """

    test: str
    worker: str
    seconds: float = 0.0
    fixtures_s: float = 0.0
    cpu_s: float = 0.0


class Meter:
    """Pytest plugin of each process that runs tests: it measures the processor seconds since the test before."""

    def __init__(self) -> None:
        self._before_s = 0.0

    def pytest_collection_finish(self) -> None:
        self._before_s = cpu.used_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        yield
        now_s = cpu.used_s()
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
            timing.cpu_s += float(str(dict(report.user_properties).get(_CPU_S, 0.0)))

    def pytest_sessionfinish(self) -> None:
        if self._found:
            RECORD.write_text("".join(json.dumps(asdict(one)) + "\n" for one in self._found.values()), encoding="utf-8")


def read() -> list[Timing]:
    return [Timing(**json.loads(line)) for line in RECORD.read_text(encoding="utf-8").splitlines()]


def table(timings: list[Timing], count: int = COUNT) -> str:
    """Suites and workers with their sums, then the slowest tests, slowest first."""
    suites: dict[str, list[Timing]] = defaultdict(list)
    workers: dict[str, list[Timing]] = defaultdict(list)
    for one in timings:
        suites["/".join(Path(one.test.partition("::")[0]).parts[:2])].append(one)
        workers[one.worker].append(one)
    lines = ["seconds  fixtures      cpu  tests  by suite, then by worker"]
    for group in (suites, workers):
        for name, those in sorted(group.items(), key=lambda item: -_sum(item[1])):
            fixtures_s, cpu_s = sum(one.fixtures_s for one in those), sum(one.cpu_s for one in those)
            lines.append(f"{_sum(those):7.1f}  {fixtures_s:8.1f}  {cpu_s:7.1f}  {len(those):5}  {name}")
    lines.append("seconds  fixtures      cpu  test")
    for one in sorted(timings, key=lambda one: -one.seconds)[:count]:
        lines.append(f"{one.seconds:7.1f}  {one.fixtures_s:8.1f}  {one.cpu_s:7.1f}  {one.test}")
    return "\n".join(lines)


def _sum(timings: list[Timing]) -> float:
    return sum(one.seconds for one in timings)


def main() -> int:
    if not RECORD.exists():
        print("no record of a run: make test", file=sys.stderr)
        return 2
    print(table(read(), int(sys.argv[1]) if len(sys.argv) > 1 else COUNT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
