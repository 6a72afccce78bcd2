"""What every suite shares: which tests this machine cannot run, and saying so loudly at the end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long soak, fuzz and load tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    gpu = any(Path("/dev").glob("nvidia[0-9]*"))
    for item in items:
        if item.get_closest_marker("gpu") and not gpu:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here; on one: make test-gpu"))
        if item.get_closest_marker("soak") and not config.getoption("--soak"):
            item.add_marker(pytest.mark.skip(reason="long run; make soak"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A block at the end that says what was not run on this machine, and why."""
    reasons: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        suite = "/".join(Path(report.nodeid.partition("::")[0]).parts[:2])
        reasons[suite, reason.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.write_sep("=", "NOT RUN ON THIS MACHINE", yellow=True, bold=True)
        for (suite, reason), count in sorted(reasons.items()):
            terminalreporter.write_line(f"{count:>5} in {suite}: {reason}", yellow=True)
