"""A child replies only after its device has finished: the judge then reads its memory, and writes to granted memory."""

from __future__ import annotations

import types
import weakref
from typing import Any

import pytest
import torch

from evaluator.child.cpu_device import CpuDevice
from evaluator.child.reference.recipes import Recipes
from evaluator.child.session import Session

SOURCE = """
import torch


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight


def get_inputs(rows=2):
    return [torch.ones(rows, 3)]


def get_init_inputs():
    return [3]
"""


class Slow(CpuDevice):
    """A device with `pending` work from each request until it is synchronised."""

    def __init__(self) -> None:
        self.pending = False
        self.claimed = 0

    def open(self, grant: Any, fds: list[int]) -> Any:
        return types.SimpleNamespace(calls=[grant])

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        assert not self.pending, "the judge may read it before it is written"
        self.claimed += 1
        return super().claim(tensor)

    def finish(self) -> None:
        self.pending = False


@pytest.fixture
def session() -> Session:
    one = Session()
    one.device = Slow()
    one.module = types.ModuleType("reference")
    exec(SOURCE, one.module.__dict__)
    return one


def ask(session: Session, op: str, **fields: Any) -> int:
    """Make a request, and return the number of claimed tensors. The device must be idle at the reply."""
    device = session.device
    assert isinstance(device, Slow)
    device.pending, device.claimed = True, 0
    operation = Recipes(session).operations().get(op) or getattr(session, op)
    operation(fields, [])
    assert not device.pending, f"{op} answers before the device is done"
    return device.claimed


def test_the_device_is_idle_at_every_reply(session: Session) -> None:
    construct = {"class": "Model", "tree": {"list": [3]}, "train": False, "seed": 1, "beside": False, "grant": []}
    assert ask(session, "recipe", function="get_inputs", sizes={}, seed=1) == 1
    assert ask(session, "draws", sizes={"rows": 4}, seeds=[1, 2], positions=[0]) == 2
    assert ask(session, "construct", **construct) == 1
    assert ask(session, "state", names=["weight"], grant=[torch.zeros(3)]) == 0
    assert session.model.weight.tolist() == [0, 0, 0]
    assert ask(session, "describe") == 1


def test_a_model_that_is_not_kept_is_gone_before_the_next_is_made(session: Session) -> None:
    """Each may need most of a device's memory."""
    alive: list[int] = []
    made = weakref.WeakSet[torch.nn.Module]()

    class Large(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            alive.append(len(made))
            made.add(self)

    session.module.Large = Large
    for beside in (False, False, True, True, False):
        construct = {"class": "Large", "tree": {"list": []}, "train": False, "seed": 1, "beside": beside, "grant": []}
        ask(session, "construct", **construct)
    assert alive == [0, 0, 1, 1, 0]


def test_the_device_is_idle_when_null_outputs_are_made(session: Session) -> None:
    claim = CpuDevice().claim(torch.zeros(2))
    assert ask(session, "null", outputs={"tensor": claim}) == 0
