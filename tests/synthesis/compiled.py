"""Compile what a Candidate launches for sm_90 without a GPU: forward runs on meta tensors, launches are recorded."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from evaluator.child.gpu.cubin import resource_usage

TARGET = GPUTarget("cuda", 90, 32)
SHARED = 227 * 1024  # bytes that a program may have
DTYPES = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8e4nv",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "uint8": "u8",
    "int64": "i64",
    "bool": "i1",
}


def launched(path: str, reference: str, sizes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one entry for each kernel that a call of the Candidate's forward launches: name, grid, shared bytes."""
    module, problem = _load(path), _load(reference)
    found: list[dict[str, Any]] = []

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> None:
        del warmup
        found.append(_compile(kernel, args, grid, named))

    triton.JITFunction.run = run
    with torch.device("meta"):
        recipe = getattr(problem, "get_init_inputs", None)
        made = module.ModelNew(*(recipe(**_pick(recipe, sizes)) if recipe else []))
        made(*problem.get_inputs(**_pick(problem.get_inputs, sizes)))
    return found


def _compile(kernel: Any, args: tuple[Any, ...], grid: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    options = {k: named[k] for k in ("num_warps", "num_stages", "maxnreg") if k in named}
    given = dict(zip(kernel.arg_names, args, strict=False)) | {k: v for k, v in named.items() if k in kernel.arg_names}
    free = {p.name for p in kernel.params if p.do_not_specialize}
    constants = {p.name for p in kernel.params if p.is_constexpr} | {
        k for k, v in given.items() if type(v) is int and v == 1 and k not in free
    }
    signature, attributes = {}, {}
    for place, name in enumerate(kernel.arg_names):
        value = given[name]
        if name in constants:
            signature[name] = "constexpr"
        elif isinstance(value, torch.Tensor):
            signature[name] = "*" + DTYPES[str(value.dtype).removeprefix("torch.")]
            attributes[(place,)] = [["tt.divisibility", 16]]
        else:
            signature[name] = "i32" if value < 2**31 else "i64"
            if value % 16 == 0 and name not in free:
                attributes[(place,)] = [["tt.divisibility", 16]]
    values = {(kernel.arg_names.index(name),): given[name] for name in constants}
    made = triton.compile(ASTSource(kernel, signature, values, attributes), target=TARGET, options=options)
    entry = {"kernel": kernel.__name__, "grid": list(grid), "shared": made.metadata.shared, **options}
    assert entry["shared"] <= SHARED, entry
    found = re.findall(r"\b(?:(ld|st)\.global[\w.:]*?(\.v\d)?\.b\d+|(cp\.async[\w.]*)[^;]*, (\w+);)", made.asm["ptx"])
    entry["flushing_roots"] = len(re.findall(r"sqrt\.approx\.ftz", made.asm["ptx"]))
    entry["in_float64"] = len(re.findall(r"\.f64\b", made.asm["ptx"]))
    entry["accesses"] = Counter("".join(parts) for parts in found)
    entry["single_stores"] = len(re.findall(r"\bst\.shared\.b32\b", made.asm["ptx"]))
    entry["spilled"] = sum(int(one["stack_bytes"]) for one in resource_usage(made.asm["cubin"]))
    if os.environ.get("SHOW_PTX"):
        entry["ptx"] = made.asm["ptx"]
    return entry


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("made", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _pick(recipe: Any, sizes: Mapping[str, Any]) -> dict[str, Any]:
    names = recipe.__code__.co_varnames[: recipe.__code__.co_argcount]
    return {k: v for k, v in sizes.items() if k in names}


def main() -> None:
    """Print a line for each case of the JSON on standard input: its name, and every launch."""
    for name, case in json.load(sys.stdin).items():
        found = []
        for sizes in case["sizes"]:
            for candidate in case["candidates"]:
                found += launched(candidate, case["reference"], sizes)
        print(json.dumps([name, found]), flush=True)


if __name__ == "__main__":
    main()
