"""The environment of caged CUDA children: their one GPU, the driver's folder, memory that can be exported."""

from __future__ import annotations

import re
from pathlib import Path

from evaluator.child import warpwright_native


def environment(uuid: str) -> dict[str, str]:
    """Return the variables of a caged CUDA child."""
    folder = _driver_folder()
    return {
        "WARPWRIGHT_NATIVE_CACHE": "/job/native:/tmp/native",
        "CUDA_VISIBLE_DEVICES": uuid,
        "CUDA_MODULE_LOADING": "LAZY",
        "TORCH_CUDA_ARCH_LIST": _architecture(),
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False",
        **({"LD_LIBRARY_PATH": folder, "TRITON_LIBCUDA_PATH": folder} if folder else {}),
    }


def _architecture() -> str:
    """Return this GPU's name for torch's extension builder, which then need not see the GPU: "9.0a"."""
    return re.sub(r"sm_(\d+)(\d)(a?)", r"\1.\2\3", warpwright_native._cuda_target())


def _driver_folder() -> str | None:
    """Return the folder of the libcuda that this process uses."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if Path(path).name.startswith("libcuda.so"):
            return str(Path(path).parent)
    return None
