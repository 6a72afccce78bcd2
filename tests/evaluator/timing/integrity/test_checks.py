"""The table of integrity checks is complete: every module of the folder is in it, or is a declared helper."""

from __future__ import annotations

import pkgutil

from evaluator.timing import integrity
from evaluator.timing.integrity import CHECKS, HELPERS


def test_every_module_is_a_check_or_a_declared_helper() -> None:
    modules = {module.name for module in pkgutil.iter_modules(integrity.__path__)}
    names = [check.name for check in CHECKS]
    assert len(names) == len(set(names))
    assert modules == {*names, *HELPERS}
    assert not set(names) & set(HELPERS)


def test_a_check_has_the_name_of_its_module() -> None:
    for check in CHECKS:
        assert type(check).__module__ == f"{integrity.__name__}.{check.name}"
        assert callable(check.run)
