"""Generated Triton for pooling over one, two and three dimensions: values, and what it compiles to for sm_90."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from synthesis.tuning import configure, read_tunables
from tests.synthesis.checking import graphs, problem
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.test_triton import case

pytest.importorskip("triton")
pytestmark = pytest.mark.compiles

SIZES = "b=2, c=3, d=7, h=9, w=37"
# The interpreter takes ten milliseconds for a row of a layer, so volumes have few layers, and chunks of 16 rows.
LINES, VOLUMES = "torch.randn(b, c, w)", "torch.randn(b, c, d, h, w)"
SPECIAL = "(torch.randn(b, c, w) + 2).round().log()"  # some NaN and infinities
SHOWN = [
    {"name": "a", "b": 2, "c": 3, "d": 7, "h": 9, "w": 37},
    {"name": "b", "b": 1, "c": 2, "d": 8, "h": 12, "w": 64},
]
CHECKED = [*SHOWN, {"name": "odd", "b": 1, "c": 1, "d": 5, "h": 65, "w": 21}]
CHECKED_VOLUMES = [
    {"name": "a", "b": 2, "c": 1, "d": 4, "h": 5, "w": 37},
    {"name": "b", "b": 1, "c": 2, "d": 3, "h": 4, "w": 64},
    {"name": "odd", "b": 1, "c": 1, "d": 3, "h": 33, "w": 21},
]
CASES: dict[str, tuple[str, str]] = {
    "lines": ("return F.max_pool1d(a0, 4, 1, 2), F.avg_pool1d(a0, 8, 1, 4), F.avg_pool1d(a0, 3, 2, 1)", LINES),
    "apart": ("return F.max_pool1d(a0, 8, 1, 4, 3), F.max_pool1d(a0, 3, 2, 0, 2), F.max_pool1d(a0, 5)", LINES),
    "special values": ("return F.max_pool1d(a0, 5, 1, 2, 2), F.max_pool1d(a0, 3, 1, 1), F.avg_pool1d(a0, 2)", SPECIAL),
    "special volumes": ("return F.max_pool3d(a0, 3, 2, 1), F.avg_pool3d(a0, 2)", SPECIAL.replace("c, w", "c, d, h, w")),
    "volumes": ("return F.max_pool3d(a0, 3, 2, 1), F.avg_pool3d(a0, 3, 2, 1), F.avg_pool3d(a0, 2)", VOLUMES),
    "volumes apart": ("return F.max_pool3d(a0, (2, 3, 2), 1, 1, (1, 2, 3)), F.avg_pool3d(a0, (1, 2, 3), 1)", VOLUMES),
    "parts of volumes": (
        "return F.avg_pool3d(a0, 3, 2, 1, count_include_pad=False), F.avg_pool3d(a0, 2, (1, 2, 3))",
        VOLUMES,
    ),
    "parts of windows": (
        "return F.max_pool2d(a0, 3, 2, 1, ceil_mode=True), F.avg_pool2d(a0, 3, 2, 1, True), "
        "F.avg_pool2d(a0, 3, 2, 1, True, False), F.avg_pool2d(a0, 2, divisor_override=3)",
        "torch.randn(b, c, h, w)",
    ),
    "parts of lines": (
        "return F.avg_pool1d(a0, 5, 2, 2, count_include_pad=False), F.avg_pool1d(a0, 4, 3, ceil_mode=True)",
        LINES,
    ),
    "half precision": ("return F.max_pool1d(a0, 5, 2, 2, 2), F.avg_pool1d(a0, 4)", f"{LINES}.half()"),
    "images": ("return F.max_pool2d(a0, (3, 2), 2, 1, (2, 3))", "torch.randn(b, c, h, w)"),
}


def source_of(name: str) -> str:
    return problem(*CASES[name], sizes=SIZES)


def first(source: str, workloads: list[dict[str, Any]]) -> Draft:
    draft = next(iter(sequence(graphs(source, workloads), DeviceKind.CUDA, 0)))
    assert "pool" not in draft.left
    return draft


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, interpreter: Interpreter, tmp_path: Path) -> None:
    draft, sizes = first(source_of(name), SHOWN), CHECKED
    if "volumes" in name:
        config = read_tunables(draft.source)[1] | {"VOLUME_ROWS": 16}
        draft, sizes = replace(draft, source=configure(draft.source, config)), CHECKED_VOLUMES
    asked = case(tmp_path, "windows", source_of(name), [draft], sizes)
    assert interpreter.check({name: asked}) == {name: "right"}
