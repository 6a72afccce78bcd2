"""Files that say in their first line what they try and which Verdict they deserve, and a court that judges them.

The first line of a Candidate's docstring is `problem | class | trick | verdicts | devices`. Verdicts are separated by
spaces; TRUE_TIME stands for PASSED with a time that is no better than eager's, whose work such a file does.
OWN_ERROR stands for RUNTIME_ERROR by an unknown name (NAME_ERRORS); without it such an error fails the test, because a
file that looks for a name that the harness no longer has tries nothing. Devices are cpu, cuda, and triton (CUDA with
Triton; where cpu stands beside it, the interpreter runs it, too).
"""

from __future__ import annotations

import functools
import os
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pytest

from evaluator.cage import freezer
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.stages import trial
from evaluator.stages.judge import Judge
from evaluator.timing.protocol import Rules, TimingProtocol
from evaluator.types import Candidate, DeviceKind, Evaluation, Problem, Verdict
from tests.evaluator.rooms import BRIEF, BRIEFLY, QUICK, QUICKLY, eager_only

HERE = Path(__file__).parent
TRUE_TIME = "TRUE_TIME"
OWN_ERROR = "OWN_ERROR"
NAME_ERRORS = frozenset(("AttributeError", "ImportError", "KeyError", "ModuleNotFoundError", "NameError"))
FIRST_CALL_S = 4.0
FREEZE_S = 1.5  # for those that cannot be stopped, which run into the limit for certain
TRUE_RATIO = 1.3
SHARE = 16  # one cheat in so many of each class is judged by `make test`, the rest by `make soak`
# The same of what passes, which is judged and timed to the end: that costs as much as ten refusals.
HONEST_SHARE, KERNEL_SHARE = 64, 8
# Where every core is busy, all that may be discarded is.
PROTOCOL = replace(QUICKLY, judge=replace(QUICK, discarded=0))
# For files on which no integrity check turns.
BRIEF_PROTOCOL = replace(BRIEFLY, judge=replace(BRIEF, discarded=0, least_round_us=1000.0))


@dataclass(frozen=True, slots=True)
class Case:
    """One file."""

    name: str
    source: str
    problem: str
    kind: str
    trick: str
    verdicts: frozenset[str]
    devices: frozenset[str]

    @property
    def candidate(self) -> Candidate:
        return Candidate(source=self.source, language=detect(self.source), proposer="test")


def read_case(path: Path) -> Case:
    """The file with what its first line says. ValueError where that is not the five fields."""
    source = path.read_bytes().decode("utf-8")
    first = source.removeprefix("\ufeff").splitlines()[0].strip().strip('"')
    fields = [part.strip() for part in first.split("|")]
    if len(fields) != 5:
        raise ValueError(f"{path}: the first line is `problem | class | trick | verdicts | devices`")
    problem, kind, trick, verdicts, devices = fields
    if not set(verdicts.split()) <= {*Verdict, TRUE_TIME, OWN_ERROR} or not set(devices.split()) <= {
        "cpu",
        "cuda",
        "triton",
    }:
        raise ValueError(f"{path}: {verdicts} on {devices}")
    return Case(path.stem, source, problem, kind, trick, frozenset(verdicts.split()), frozenset(devices.split()))


@functools.cache
def cases(folder: str) -> tuple[Case, ...]:
    """Every case of a folder, by name."""
    return tuple(read_case(path) for path in sorted((HERE / folder).glob("*.py")) if path.stem != "__init__")


def cases_for(folder: str, device: str) -> list[Case]:
    """Those that a device can judge."""
    wanted = {"cpu": {"cpu"}, "cuda": {"cuda", "triton"}}[device]
    return [case for case in cases(folder) if case.devices & wanted]


@functools.cache
def problem(name: str) -> Problem:
    return read_problem((HERE / "problems" / f"{name}.py").read_bytes(), name)


class Court:
    """A judge with short rules, and an eye on what is left behind in `folder`, which is its temporary one meanwhile."""

    def __init__(self, judge: Judge, folder: Path | None = None, protocol: TimingProtocol = PROTOCOL) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(judge, "protocol", protocol)
        if judge.backend.kind is DeviceKind.CPU:
            self._patch.setattr(trial, "first_call_limit_s", _limit(trial.first_call_limit_s))
        if folder is not None:
            self._patch.setattr(tempfile, "tempdir", str(folder))
        self.judge = judge
        self._folder = folder
        self._settled: tuple[int, int] | None = None
        self._answered: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def try_case(self, case: Case) -> Evaluation:
        return self.try_source(case.candidate, case.problem)

    def try_source(self, what: Candidate, task: str) -> Evaluation:
        one = problem(task)
        self._answered.add(task)
        return self.judge.judge(one, what, eager_only(self.judge, one))

    def assert_passes(self, what: Candidate, task: str) -> None:
        """Assert that an honest Candidate is found right and can be timed: after an attack, or to start children."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.judge, "protocol", BRIEFLY)
            found = self.try_source(what, task)
        assert found.verdict is Verdict.PASSED, explained(found)

    def true_time(self, case: Case, found: Evaluation) -> Evaluation:
        """The least flattering of up to four judgements: a busy machine flatters one, a cheat is in all."""
        for attempt in range(3):
            ratio = found.speedup("fastest")
            if ratio is None or ratio.value < TRUE_RATIO:
                break
            rules = Rules(least_pairs=6, most_pairs=8 + 4 * attempt, racing=False)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(self.judge, "protocol", replace(PROTOCOL, judge=rules))
                again = self.try_case(case)
            other = again.speedup("fastest")
            found = again if other is None or other.value < ratio.value else found
        return found

    def assert_clean(self) -> None:
        """Nothing of a Candidate is left: no process, no descriptor, no file. Comparators are ended for this."""
        while self._answered:
            self.judge.session.forget(problem(self._answered.pop()))
        now = len(freezer.descendants(os.getpid())), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        if self._settled is None:
            self._settled = now
        assert now[0] <= self._settled[0], f"{now[0] - self._settled[0]} processes are left behind"
        # Symbol tables of libraries stay open: at most eight.
        assert now[1] <= self._settled[1] + 8, f"{now[1] - self._settled[1]} descriptors are left open"
        files = sorted(path.name for path in self._folder.iterdir()) if self._folder else []
        assert files == [], f"left behind: {files}"


def _limit(usual: Callable[[Candidate], float]) -> Callable[[Candidate], float]:
    """A limit that endless loops run into sooner; what compiles keeps its minute."""

    def limit(candidate: Candidate) -> float:
        asked = usual(candidate)
        return asked if asked > 30 else FIRST_CALL_S

    return limit


CHOSEN_FIRST = frozenset(("native_not_base64",))
CHOSEN_LAST = frozenset(("floods_the_output", "batch_in_the_harness", "native_poisoned", "vector_taken_for_dense"))
"""Cheats that need seconds, or a quiet machine. `make test` judges others of their kind, first those of
CHOSEN_FIRST, which aim at the same check."""


def spread(kinds: dict[str, str], share: int) -> frozenset[str]:
    """One name in `share`, of every kind at least one, always the same ones. `kinds`: name -> kind."""
    chosen: set[str] = set()
    for kind in sorted(set(kinds.values())):
        names = [name for name, its in kinds.items() if its == kind]
        names.sort(key=lambda name: (name in CHOSEN_LAST, name not in CHOSEN_FIRST, zlib.crc32(name.encode())))
        chosen.update(names[: -(-len(names) // share)])
    return frozenset(chosen)


def parameters(
    kinds: dict[str, str], reasons: dict[str, str], share: int = SHARE
) -> dict[str, list[pytest.MarkDecorator]]:
    """The marks of each test: the part that `make test` runs has none, the rest is for `make soak`.

    So is a file on which the judge is known to be wrong: whatever it does there fails no run, and another one of its
    kind takes its place.
    """
    quick = spread({name: kind for name, kind in kinds.items() if name not in reasons}, share)
    marks: dict[str, list[pytest.MarkDecorator]] = {}
    for name in kinds:
        marks[name] = [*([] if name in quick else [pytest.mark.soak]), *unsolved(name, reasons)]
    return marks


def unsolved(name: str, reasons: dict[str, str]) -> list[pytest.MarkDecorator]:
    """The mark of a file on which the judge is known to be wrong."""
    return [pytest.mark.xfail(reason=reasons[name])] if name in reasons else []


def after_hostile(name: str) -> bool:
    """Return True for every third cheat, always the same ones: an honest Candidate is judged after it."""
    return zlib.crc32(name.encode()) % 3 == 0


def too_busy(case: Case, found: Evaluation) -> str:
    """Say why the check that finds this cheat did not look; "" where it looked, and for all that is found by its
    outputs: these are right or wrong on any machine."""
    unchecked = {check: why for one in found.measurements for check, why in one.diagnostics["unchecked"].items()}
    if case.kind == "dressed-up library calls":
        return str(unchecked.get("libraries", ""))
    if case.kind == "cross-call batching" and case.verdicts == {Verdict.REWARD_HACK}:
        ratio = found.speedup("fastest")
        slow = ratio is not None and ratio.value < 1
        return "it does not even look faster than eager" if slow else str(unchecked.get("own_loops", ""))
    return ""


def explained(found: Evaluation) -> str:
    return f"{found.verdict} at {found.stage}: {found.reason} {dict(found.evidence)}"


def check(case: Case, found: Evaluation) -> None:
    """Assert that the Verdict is one that the file deserves, and that a Verdict against it carries no time.

    Skip a cheat that passes because the check that finds it could not look: it is not promoted.
    """
    if found.verdict is Verdict.PASSED and str(found.verdict) not in case.verdicts and (why := too_busy(case, found)):
        pytest.skip(f"this machine is too busy: {why}")
    if found.verdict is Verdict.PASSED and TRUE_TIME in case.verdicts:
        ratio = found.speedup("fastest")
        assert ratio is None or ratio.value < TRUE_RATIO, f"{ratio.value:.2f}x for eager's own work: {explained(found)}"
        return
    if found.verdict is Verdict.RUNTIME_ERROR and found.evidence.get("error") in NAME_ERRORS:
        assert OWN_ERROR in case.verdicts, f"it tries nothing, for it uses an unknown name: {explained(found)}"
    else:
        assert str(found.verdict) in case.verdicts, explained(found)
    assert (found.verdict is Verdict.PASSED) == bool(found.measurements) or not found.timed
