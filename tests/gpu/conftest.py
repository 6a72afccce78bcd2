"""GPU tests skip, loudly, where there is no GPU to test on."""

from pathlib import Path

import pytest

from evaluator.child import cuda_driver

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    mine = [item for item in items if _HERE in item.path.parents]
    why = cuda_driver.available()
    for item in mine:
        item.add_marker(pytest.mark.gpu)
        if why:
            item.add_marker(pytest.mark.skip(reason=f"NOT RUN, NEEDS AN NVIDIA GPU: {why}"))


@pytest.fixture(scope="session")
def driver():
    import torch

    torch.cuda.init()
    return cuda_driver.Driver(0)
