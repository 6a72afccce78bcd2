"""The operations of a call, as torch's dispatcher sees them."""

from __future__ import annotations

import torch

from evaluator.child.reference.observe import Recorder
from evaluator.devices.rates import matmul_gflops


def test_arithmetic_is_counted_by_formula_by_element_and_by_what_is_summed() -> None:
    x, w = torch.randn(4, 8), torch.randn(8, 16)
    with torch.no_grad(), Recorder(arithmetic=True) as recorder:
        (torch.relu(x @ w)).sum(-1)
    assert recorder.flops == 2 * 4 * 8 * 16 + 4 * 16 + 4 * 16


def test_copies_and_views_are_no_arithmetic() -> None:
    x = torch.randn(4, 8)
    with torch.no_grad(), Recorder(arithmetic=True) as recorder:
        x.t().contiguous().view(-1).clone().to(torch.float64)
    assert recorder.flops == 0


def test_nothing_is_counted_unless_asked() -> None:
    with torch.no_grad(), Recorder() as recorder:
        torch.ones(4) + 1
    assert recorder.flops == 0
    assert recorder.counts["aten.add"] == 1


def test_state_counts_as_far_as_it_is_read_and_once() -> None:
    weight, unread = torch.randint(-127, 128, (16, 8), dtype=torch.int8), torch.randn(99)
    table, mask = torch.randn(1000, 4), torch.ones(64, 64, dtype=torch.bool)
    with torch.no_grad(), Recorder(state=[weight, unread, table, mask]) as recorder:
        (torch.randn(2, 8) @ weight.t().to(torch.float32)).mul_(weight.sum())  # twice
        torch.nn.functional.embedding(torch.tensor([5, 7]), table)
        torch.zeros(8, 8).masked_fill(mask[:8, :8], 1.0)
        torch.ones(8, 8).masked_fill(mask[:8, :8], 1.0)  # read already
        torch.zeros_like(unread).add_(1)
        unread.copy_(torch.ones(99))
        torch.eye(3).to_sparse()
    assert recorder.state_bytes == 16 * 8 + 2 * 4 * 4 + 8 * 8


def test_a_rate_is_measured_for_numbers_that_are_multiplied() -> None:
    assert (matmul_gflops(torch.device("cpu"), torch.float32) or 0) > 0
    assert matmul_gflops(torch.device("cpu"), torch.int64) is None
