"""Small problems of ours in the forms of other projects, written to a folder."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KERNELBENCH = """import torch
import torch.nn as nn

N = 64


class Model(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s

    def forward(self, x):
        return x * self.s


def get_inputs():
    return [torch.rand(N, N)]


def get_init_inputs():
    return [2.0]
"""
TASK = """
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: shared.py, source: ../shared.py}
lang: py
description: Scale and shift into a buffer.
config: {main: eval.py}
tests:
  - {rows: 33, words: wide, seed: 1}
benchmarks:
  - {rows: 8, words: wide, seed: 2}
  - {rows: 16, words: wide, seed: 3}
ranking_by: geom
gpus: [H100]
"""
SHARED = """def make_match_reference(reference, rtol=1e-5, atol=1e-8):
    return None


def doubled(n):
    return 2 * n
"""
REFERENCE = """from pathlib import Path

import torch
from shared import doubled, make_match_reference
from task import input_t, output_t

Path("was_run").touch()


def ref_kernel(data: input_t) -> output_t:
    x, config, out = data
    out[...] = x * 3 + config["shift"] + torch.ones(1, device="cuda")
    return out


def generate_input(rows: int, words: str, seed: int) -> input_t:
    assert words == "wide"
    gen = torch.Generator(device="cuda").manual_seed(seed)
    x = torch.randn(rows, doubled(4), device="cuda", generator=gen)
    torch.cuda.synchronize()
    return x, {"shift": 2, "more": None}, torch.empty(rows, 8).cuda()


check_implementation = make_match_reference(ref_kernel, rtol=2e-2, atol=1e-3)
"""
DEFINITION: dict[str, Any] = {
    "name": "gather_scale", "op_type": "gather",
    "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 4}},
    "inputs": {
        "x": {"shape": ["rows", "hidden"], "dtype": "float32"},
        "places": {"shape": ["rows"], "dtype": "int32"},
        "s": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "float32"}},
    "reference": "import torch\n\n\ndef run(x, places, s):\n    return x[places.long()] * s\n",
}  # fmt: skip
SOL: dict[str, Any] = {
    "name": "twice", "axes": {"rows": {"type": "var"}, "wide": {"type": "expr", "expression": "rows * 2"}},
    "inputs": {"x": {"shape": ["rows", "wide"], "dtype": "float64"}},
    "outputs": {"y": {"shape": ["rows", "wide"], "dtype": "float64"}},
    "reference": "def run(x):\n    return x + x\n",
}  # fmt: skip
TRACE = """Operator: aten.add.Tensor
cnt: 3, ((T([2, 3], f16), T([2, 3], f16)), {'alpha': 2})
cnt: 1, ((T([4, 3], f16, [1, 4]), 1.5), {})
Operator: aten.add_.Tensor
cnt: 1, ((T([2], f32), T([2], f32)), {})
"""


def kernelbench(folder: Path, name: str = "19_ReLU", text: str = KERNELBENCH, level: str = "level1") -> Path:
    (folder / level).mkdir(exist_ok=True)
    path = folder / level / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


def gpumode(folder: Path, *, task: str = TASK, reference: str = REFERENCE, name: str = "shift_py") -> Path:
    (folder / name).mkdir()
    (folder / "shared.py").write_text(SHARED, encoding="utf-8")
    (folder / name / "task.yml").write_text(task, encoding="utf-8")
    (folder / name / "reference.py").write_text(reference, encoding="utf-8")
    return folder / name


def tensors_file(path: Path, dtype: str, shape: list[int], data: bytes) -> None:
    header = json.dumps({"places": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def flashinfer(folder: Path, changes: Mapping[str, Any] | None = None, inputs: Mapping[str, Any] | None = None) -> Path:
    """A definition with one workload, whose places are in a file."""
    definition = {**DEFINITION, **(changes or {})}
    tensors_file(folder / "blob/places.safetensors", "I32", [3], struct.pack("<3i", 2, 0, 1))
    path = folder / "definitions/gather/gather_scale.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(definition), encoding="utf-8")
    stored = {"type": "safetensors", "path": "blob/places.safetensors", "tensor_key": "places"}
    given = {"x": {"type": "random"}, "places": stored, "s": {"type": "scalar", "value": 0.5}, **(inputs or {})}
    entry = {"definition": "gather_scale", "workload": {"uuid": "u1", "axes": {"rows": 3}, "inputs": given}}
    (folder / "workloads").mkdir()
    (folder / "workloads/gather_scale.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
    return path


def sol(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    (folder / "twice").mkdir()
    (folder / "twice/definition.json").write_text(json.dumps({**SOL, **(changes or {})}), encoding="utf-8")
    entries = [
        {
            "uuid": str(rows),
            "axes": {"rows": rows},
            "inputs": {"x": {"type": "random"}},
            "tolerance": {"max_rtol": 0.04},
        }
        for rows in (2, 5)
    ]
    (folder / "twice/workload.jsonl").write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    return folder / "twice"


def backendbench(folder: Path, text: str = TRACE) -> Path:
    path = folder / "traces.txt"
    path.write_text(text, encoding="utf-8")
    return path
