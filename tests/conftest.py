"""Shared parts of every suite: the tests to run, their distribution, one judge, and a summary of what was not run."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.support import alone, distribution, stacks, timings
from tests.support.stacks import Stack

if TYPE_CHECKING:
    from xdist.remote import Producer

    from evaluator.stages.judge import Judge

_HERE = Path(__file__).parent
_CORES = sorted(os.sched_getaffinity(0))
_JUDGING, _SERVING = ("adversarial", "evaluator"), ("browser", "e2e")
_ALL_SLOW = frozenset(("adversarial", "browser", "e2e", "gpu", "take_home"))
_LOGGED = [
    *structlog.get_config()["processors"][:-1],
    structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long soak, fuzz and load tests too")
    parser.addoption("--fast", action="store_true", help="leave out what judges, compiles or needs a database")
    parser.addoption("--shard", default="1/1", metavar="I/N", help="the I-th (from 1) of N parts of the tests")
    parser.addoption(
        "--stack", choices=("essential", "postgres"), default="essential",
        help="postgres: run every service and worker test on PostgreSQL and Redis, and fail where they are missing",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until everything is collected: imports make a million objects that stay
    # A shell lets its background jobs ignore Ctrl-C, and so would the processes that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A busy machine is no counterexample.
    examples = 200 if config.getoption("--soak") else 40
    settings.register_profile(
        "untimed", settings.default, max_examples=examples, deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    settings.load_profile("untimed")
    config.pluginmanager.register(timings.Meter())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(timings.Recorder())
        config.pluginmanager.register(alone.Locks())
    else:
        config.pluginmanager.register(alone.Turns(Path(config.workerinput[alone.FOLDER])))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> distribution.Scheduling | None:
    return distribution.Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not metafunc.config.getoption("--soak"):
        distribution.drop_soak_parameters(metafunc.definition)
    if "stack" in metafunc.fixturenames:
        metafunc.parametrize("stack", stacks.parameters(metafunc), indirect=True, scope="session")


@pytest.fixture(autouse=True)
def _plain_tracebacks() -> None:
    """Log plain tracebacks, as in the service: the fancy ones can take a minute each.

    Each test starts anew, since some configure logging themselves and loggers would keep that for good.
    """
    structlog.reset_defaults()
    structlog.configure(processors=_LOGGED)


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Start the database and the queue that a test runs on (tests/support/stacks.py)."""
    asked_for = request.config.getoption("--stack") == "postgres"
    with stacks.make(request.param, tmp_path_factory.mktemp(request.param), asked_for=asked_for) as made:
        yield made


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """One judge for the whole session: each starts children that import torch, which takes seconds. It chooses among
    all cores, whoever asks for it first."""
    from evaluator.serve import make_backend
    from evaluator.stages.judge import Judge

    os.sched_setaffinity(0, _CORES)
    one = Judge(make_backend("cpu"))
    yield one
    one.close()


@pytest.fixture(scope="module", autouse=True)
def _cores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A judge times on the last core and keeps its own process off it, for good. So does whatever judges in this
    process. A service that is started keeps all but its judge off that core, too: in a parallel run each process has
    cores of its own for services, lest all of them work on the same. Other tests may use every core."""
    part, worker = request.path.relative_to(_HERE).parts[0], os.environ.get("PYTEST_XDIST_WORKER", "")
    with pytest.MonkeyPatch.context() as patch:
        if part in _JUDGING:
            os.sched_setaffinity(0, _CORES[:-1] or _CORES)
        elif part in _SERVING and worker:
            count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
            own = _CORES[int(worker.removeprefix("gw")) % len(_CORES) :: count]
            if len(own) < getattr(request.module, "FEWEST_CORES", 1):
                own = _CORES  # and the lock that all judges share
            else:
                locks = tmp_path_factory.getbasetemp().parent / f"locks-{own[-1]}"
                locks.mkdir(exist_ok=True)
                patch.setenv("WARPWRIGHT_LOCK_DIR", str(locks))
            os.sched_setaffinity(0, own)
        else:
            os.sched_setaffinity(0, _CORES)
        yield
    os.sched_setaffinity(0, _CORES)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import with `--fast` what it runs no test of: reading a thousand files of the adversarial suite takes as
    long as the tests of a room."""
    slow = config.getoption("--fast") and collection_path.parent == _HERE and collection_path.name in _ALL_SLOW
    return True if slow else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    index, count = (int(part) for part in config.getoption("--shard").split("/"))
    if not 1 <= index <= count:
        raise pytest.UsageError(f"--shard {index}/{count}: the first is 1/{count}, the last {count}/{count}")
    _leave_out(config, items)
    items[:] = items[len(items) * (index - 1) // count : len(items) * index // count]
    distribution.arrange(items)
    gpu = any(Path("/dev").glob("nvidia[0-9]*"))
    for item in items:
        if item.get_closest_marker("gpu") and not gpu:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here; on one: make test-gpu"))
        if item.get_closest_marker("clock"):
            item.add_marker(pytest.mark.flaky(reruns=2))


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long runs unless they are asked for; with `--fast` whatever is slow."""
    fast, soak = config.getoption("--fast"), config.getoption("--soak")
    kept, left_out = [], []
    for item in items:
        slow = fast and distribution.is_slow(item)
        (left_out if slow or (item.get_closest_marker("soak") and not soak) else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Freeze what is there by now, so that collecting garbage does not look through a million objects; looking through
    them once more before takes a second. Let torch use one thread: tensors are small, and a second thread would only
    spin until it gets a core."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Blocks at the end that say what was tried again, what was not run on this machine, and why."""
    again = terminalreporter.stats.get("rerun", [])
    if again:
        terminalreporter.write_sep("=", "TRIED AGAIN", yellow=True, bold=True)
        for report in again:
            terminalreporter.write_line(f"{report.nodeid} after {report.duration:.1f} s, because", yellow=True)
            terminalreporter.write_line(report.longreprtext)
    reasons: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        suite = "/".join(Path(report.nodeid.partition("::")[0]).parts[:2])
        reasons[suite, reason.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.write_sep("=", "NOT RUN ON THIS MACHINE", yellow=True, bold=True)
        for (suite, reason), count in sorted(reasons.items()):
            terminalreporter.write_line(f"{count:>5} in {suite}: {reason}", yellow=True)
