"""Run KernelBench's own evaluation as a function for a spawned process. Nothing of ours is loaded here.

It needs KernelBench's `src` folder on the path. Imports that serve language models alone (litellm, openai and the like)
are replaced by empty modules if they are missing: they take no part in an evaluation.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

_NOT_NEEDED = {
    "litellm": ("completion",),
    "openai": ("OpenAI",),
    "dotenv": ("load_dotenv",),
    "tqdm": ("tqdm",),
    "requests": (),
}
_NATIVE = Path(__file__).resolve().parents[2] / "evaluator" / "child" / "warpwright_native.py"


def _ready() -> None:
    """Provide stand-ins for missing packages, and the one file of ours that the CUDA kernels import."""
    for name, attributes in _NOT_NEEDED.items():
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            stand_in = types.ModuleType(name)
            for attribute in attributes:
                setattr(stand_in, attribute, lambda *args, **kwargs: None)
            sys.modules[name] = stand_in
    if "warpwright_native" not in sys.modules:
        spec = importlib.util.spec_from_file_location("warpwright_native", _NATIVE)
        assert spec is not None
        assert spec.loader is not None
        sys.modules["warpwright_native"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def evaluate(problem: str, source: str, backend: str, folder: str, device: str, trials: int) -> dict[str, Any]:
    """Return KernelBench's result for one file: compiled, right, and its times in ms (-1 where it took none)."""
    _ready()
    import torch  # noqa: PLC0415  in the spawned process, whose time counts
    from kernelbench.eval import eval_kernel_against_ref  # noqa: PLC0415

    if backend == "cuda":
        os.environ["TORCH_EXTENSIONS_DIR"] = folder
    found = eval_kernel_against_ref(
        problem, source, num_correct_trials=5, num_perf_trials=trials, measure_performance=True,
        timing_method="cuda_event", build_dir=folder if backend == "cuda" else None, device=torch.device(device),
        backend=backend, precision=torch.float32,
    )  # fmt: skip
    if found is None:
        return {"outcome": "no result", "passed": False}
    told = {key: value for key, value in found.metadata.items() if "traceback" not in key}  # tracebacks name folders
    why = {key: str(value)[:200] for key, value in told.items() if "error" in key or "issue" in key}
    return {
        "outcome": f"compiled {found.compiled}, correct {found.correctness}, {found.runtime} ms {why or ''}",
        "passed": bool(found.correctness),
        "kernel_ms": float(found.runtime),
        "reference_ms": float(found.ref_runtime),
    }
