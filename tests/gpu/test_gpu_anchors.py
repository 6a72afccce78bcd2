"""The first plans of rows that the synthesiser writes as kernels, on their odd sizes and compared with float64."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu
PROBLEMS = Path(__file__).resolve().parents[2] / "bench" / "anchors" / "problems"
FILES = [path for folder in ("kb", "quantised", "rows") for path in sorted((PROBLEMS / folder).glob("*.py"))]
MOST = 6


def odd(path: Path) -> dict[str, Any]:
    """Return the held-out workload of a problem."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORKLOADS":
            found = next(entry for entry in ast.literal_eval(node.value) if entry.get("held_out"))
            return {k: v for k, v in found.items() if k not in ("device", "held_out")}
    raise ValueError(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_first_plans_are_right(path: Path) -> None:
    import torch

    from bench.anchors.ours import Ours
    from bench.anchors.rows import Row
    from bench.anchors.workload import Workload
    from bench.synthesis import module_from_file

    workload = Workload(Row(f"{path.parent.name}/{path.stem}_odd", path, odd(path)), "cuda")
    plans, oracle = Ours(workload, MOST).plans, workload.oracle()
    if not plans:
        pytest.skip("only library calls")
    state = {**dict(workload.model.named_parameters()), **dict(workload.model.named_buffers())}
    with torch.no_grad():
        for plan in plans:
            made = workload.with_state(module_from_file(plan.source).ModelNew, {k: t.data for k, t in state.items()})
            oracle.check(made(*workload.inputs), strict=True)
