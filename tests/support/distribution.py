"""Spread the files of a parallel run: those that judge go to two workers, each other file to whichever worker is free.

A judge's first verdict costs as much as a hundred later ones. So each of two workers owns a warm judge: one alone would
run on for minutes after the others, and two check side by side though they time in turn. Files that share something
else which takes seconds to start go to one worker, too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

_ROOT = Path(__file__).parents[2]
_JUDGES = re.compile(r"^def \w+\((.*, )?judge[,:)]|^@pytest\.mark\.judge\b|^    judge: Judge\b", re.MULTILINE)
_SCRIPTS = re.compile(
    r"^from tests\.support(\.warm_python)? import.*\b(scripts|warm_python)\b|^from tests\.synthesis\.interpreter\b",
    re.MULTILINE,
)
_STAGES = "tests/evaluator/stages/test_"
_FIRST_JUDGE = (
    "tests/adversarial/",
    "tests/evaluator/correctness/test_buffers",
    "tests/evaluator/test_reported_cases",
    *(f"{_STAGES}{name}" for name in ("admit", "baseline", "confirm")),
)
"""Half of the judging, by time: the files beside these are in the other half."""
_CAGES = "tests/evaluator/cage/"  # whose children come from a judge's pool, and are not timed
_LONGEST_FIRST = ("e2e", "browser", "take_home", "workers", "synthesis", "service", "db")
"""Suites with long files: these start early, or one of them runs alone in the end."""
_SLOW, _SLOW_FIXTURES = ("stack", "compiles", "gpu"), frozenset({"stack", "engine", "sqlite_template", "together"})


class Scheduling(LoadFileScheduling):
    """`--dist loadfile`, with files that share something as one."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(super()._split_scope(nodeid))


@functools.cache
def _scope(path: str) -> str:
    if path.startswith(_CAGES):
        return _CAGES
    if file_judges(path):
        return f"files that judge, {'first' if path.startswith(_FIRST_JUDGE) else 'second'} half"
    return "files that run scripts" if _SCRIPTS.search(_text(path)) else path


@functools.cache
def file_judges(path: str) -> bool:
    """Return True if tests of this file ask for the fixture `judge` or are marked so."""
    return not path.startswith(_CAGES) and _JUDGES.search(_text(path)) is not None


def _text(path: str) -> str:
    return (_ROOT / path).read_text(encoding="utf-8")


def judges(item: pytest.Item) -> bool:
    return "judge" in getattr(item, "fixturenames", ()) or item.get_closest_marker("judge") is not None


def is_slow(item: pytest.Item) -> bool:
    """Return True for what `--fast` leaves out: it judges, compiles, or needs a database, a service or a GPU."""
    return judges(item) or not _SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) or _has_any(item, _SLOW)


def _has_any(item: pytest.Item, markers: Sequence[str]) -> bool:
    return any(item.get_closest_marker(name) is not None for name in markers)


def drop_soak_parameters(definition: pytest.Item) -> None:
    """Make no tests of parameters that `--soak` alone runs: a thousand of them take longer than a room's tests."""
    for place, mark in enumerate(definition.own_markers):
        if mark.name != "parametrize" or "ids" in mark.kwargs:
            continue
        names, values = mark.args
        kept = [one for one in values if not _is_soak(one)]
        if 0 < len(kept) < len(values):
            definition.own_markers[place] = pytest.mark.parametrize(names, kept, **mark.kwargs).mark


def _is_soak(value: object) -> bool:
    return any(mark.name == "soak" for mark in getattr(value, "marks", ()))


def arrange(items: list[pytest.Item]) -> None:
    """Files that judge first, then the suites with long files; the order is kept otherwise."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    path = item.path.relative_to(_ROOT)
    if file_judges(str(path)):
        return 0
    suite = "take_home" if _scope(str(path)) == _CAGES else path.parts[1]
    return 1 + (_LONGEST_FIRST.index(suite) if suite in _LONGEST_FIRST else len(_LONGEST_FIRST))
