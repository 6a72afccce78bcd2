"""What a reference assigns in float64 is gone after the run."""

from __future__ import annotations

import torch

from evaluator.child.protocol.layout import write_tree
from evaluator.child.reference.float64 import Float64Mode
from evaluator.child.session import Session


class Assigning(torch.nn.Module):
    """Assigns a buffer, an attribute, and an entry of a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.cached: torch.Tensor | None = None
        self.tables: dict[str, torch.Tensor] = {}
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = torch.lerp(self.mean, x.mean(0), 0.5)
        if self.cached is None:
            self.cached = torch.ones_like(x)
        self.tables["ones"] = self.latest = self.cached
        self.calls += 1
        return x * self.cached - self.mean


def test_assigned_tensors_are_as_before_a_run_in_float64() -> None:
    session = Session()
    session.model = model = Assigning()
    x = torch.randn(3, 4)
    tree = write_tree([x], [])
    mean = model.mean
    with session.lifted_run(), torch.no_grad():
        first = session.lifted_call(tree, [x], Float64Mode)[0]
        second = session.lifted_call(tree, [x], Float64Mode)[0]
    assert first.dtype is torch.float64
    torch.testing.assert_close(first - second, x.double().mean(0).expand(3, 4) / 4)  # the second saw the first's mean
    assert model.mean is mean
    assert bool((mean == 0).all())
    assert model.cached is None
    assert not model.tables
    assert not hasattr(model, "latest")
    assert model.calls > 0, "what is no tensor stays"
