"""Kernels for one shape, made of a reference."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from bench.one_shape import files, narrow_kernel, reduced, summary
from evaluator.problem import read_problem

SOURCE = """import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + 1, [y * 2]
def get_inputs():
    return [torch.ones(3, 4), torch.ones(())]
"""


def test_it_is_right_at_its_shape_alone() -> None:
    made = narrow_kernel(read_problem(SOURCE, "p"), ["float32 [3, 4]", "float32 []"])
    module: dict[str, type[torch.nn.Module]] = {}
    exec(compile(made.source, "kernel.py", "exec"), module)
    model = module["ModelNew"]()
    x, [y] = model(torch.ones(3, 4), torch.ones(()))
    assert (float(x.min()), float(y)) == (2.0, 2.0)
    x, [y] = model(torch.ones(3, 5), torch.ones(()))
    assert (float(x.abs().max()), float(y), x.shape) == (0.0, 0.0, (3, 5))


def test_a_folder_and_a_checkout_are_read(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    options = argparse.Namespace(checkout=tmp_path, sample=0, seed=0, level=[1], shard=None)
    assert [path.name for path in files(options)] == ["one.py"]
    level = tmp_path / "KernelBench" / "level1"
    level.mkdir(parents=True)
    (level / "1_sum.py").touch()
    assert [path.name for path in files(options)] == ["1_sum.py"]


def test_the_summary_counts_what_could_be_refused() -> None:
    rows = [{"outcome": "refused", "sizes": {"n": 3}}, {"outcome": "only one size", "sizes": {}}]
    assert "2 admitted, 1 with sizes; kernels for one shape refused: 1 of 1" in summary(
        [*rows, {"outcome": "unreadable"}]
    )


SIZED = """import torch
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, 3 * width)
    def forward(self, x, y):
        return self.layer(x) * y
def get_inputs(rows=4096, width=512, other=4096):
    return [torch.ones(rows, width), torch.ones(other, 1)]
def get_init_inputs(width=512):
    return [width]
"""


def test_sizes_are_halved_while_the_reference_accepts_them() -> None:
    [work] = reduced(read_problem(SIZED, "p"), 0.5).workloads
    assert work.sizes["width"] == 8
    assert work.sizes["rows"] == work.sizes["other"] < 4096  # equal sizes that fit together alone
    [work] = reduced(read_problem(SIZED, "p"), 1e6).workloads
    assert work.sizes == {"rows": 4096, "width": 512, "other": 4096}
