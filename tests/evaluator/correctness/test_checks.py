"""The table of correctness checks names every check once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from evaluator.correctness import checks

SUPPORT = {"protocol"}


def classes_of_modules() -> dict[str, list[type]]:
    """Return the public classes that each module of the package defines."""
    names = {found.name for found in pkgutil.iter_modules(checks.__path__)} - SUPPORT
    modules = {name: importlib.import_module(f"{checks.__name__}.{name}") for name in names}
    return {
        name: [
            one
            for label, one in inspect.getmembers(module, inspect.isclass)
            if one.__module__ == module.__name__ and not label.startswith("_")
        ]
        for name, module in modules.items()
    }


def test_every_module_has_one_check_and_the_table_has_them_all() -> None:
    found = classes_of_modules()
    assert all(len(classes) == 1 for classes in found.values()), found
    assert {classes[0] for classes in found.values()} == {type(check) for check in checks.CHECKS}
    assert len(checks.CHECKS) == len(found)


def test_names_are_unique_and_tell_the_module() -> None:
    for check in checks.CHECKS:
        assert type(check).__module__.rpartition(".")[2] == check.name.replace(" ", "_").replace("-", "_")
    assert len({check.name for check in checks.CHECKS}) == len(checks.CHECKS)
