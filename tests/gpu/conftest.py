"""GPU tests skip, loudly, where there is no GPU to test on: a file at once, without an import of its cases."""

from pathlib import Path

import pytest

from evaluator.child.protocol import cuda_driver

_HERE = Path(__file__).parent


class NotRun(pytest.Module):
    """A file of tests that this machine cannot run."""

    def collect(self):
        pytest.skip(f"NOT RUN, NEEDS AN NVIDIA GPU: {cuda_driver.available()}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    return NotRun.from_parent(parent, path=module_path) if cuda_driver.available() else None


def _problem(item):
    """Return the problem of an adversarial test: a judge keeps the references of few problems at once."""
    about = item.callspec.params if hasattr(item, "callspec") else {}
    case = about.get("case") or about.get("bug")
    return getattr(case, "problem", "") or getattr(case, "kernel", "") or about.get("kernel", "")


@pytest.hookimpl(tryfirst=True)  # before parts are taken: they are to have few problems in common
def pytest_collection_modifyitems(items):
    mine = {item for item in items if str(item.path).startswith(f"{_HERE}/")}
    items.sort(key=lambda item: _problem(item) if item in mine else "")
    for item in mine:
        item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """A judge in a process of its own."""
    from tests.gpu.judging import Judge

    with Judge(log=tmp_path_factory.mktemp("judge") / "log") as serving:
        yield serving


@pytest.fixture(scope="session")
def driver():
    import torch

    torch.cuda.init()
    return cuda_driver.Driver(0)
