"""Record how long each test of a run took, and print the slowest suites and tests of the last run.

`make timings`, or `python -m tests.support.timings [COUNT]`. The record is .pytest-timings in the checkout.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

RECORD = Path(__file__).resolve().parents[2] / ".pytest-timings"
COUNT = 30


@dataclass(slots=True)
class Timing:
    """Seconds of one test, its fixtures included, and the process that ran it."""

    test: str
    worker: str
    seconds: float = 0.0
    fixtures_s: float = 0.0


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
    lines = ["seconds  fixtures  tests  by suite, then by worker"]
    for group in (suites, workers):
        for name, those in sorted(group.items(), key=lambda item: -_sum(item[1])):
            fixtures_s = sum(one.fixtures_s for one in those)
            lines.append(f"{_sum(those):7.1f}  {fixtures_s:8.1f}  {len(those):5}  {name}")
    lines.append("seconds  fixtures  test")
    for one in sorted(timings, key=lambda one: -one.seconds)[:count]:
        lines.append(f"{one.seconds:7.1f}  {one.fixtures_s:8.1f}  {one.test}")
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
