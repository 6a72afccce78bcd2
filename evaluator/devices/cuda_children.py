"""The pools of caged CUDA children: their one GPU, the driver's folder, memory that can be exported. Without torch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluator.cage.policy import CagePolicy
from evaluator.languages import ADAPTERS

COMPILER = "evaluator.child.gpu.compiler"
"""The module that loads torch's compiler."""
OF_BUILDS = ("evaluator.child.triton_build.meta",)
"""The modules that children load which see no GPU, beside those of all."""
_PRELOAD = (
    *("torch", "evaluator.child.ops", "evaluator.child.gpu.device"),
    *(module for language in ADAPTERS.values() for module in language.preloaded),
)


def policy(uuid: str, target: str, environment: Mapping[str, str], preload: Sequence[str] = ()) -> CagePolicy:
    """Return the policy of a pool whose children see the GPU `uuid`, of architecture `target` ("sm_90a"), alone.

    They are forked from a process that has imported the modules `preload`, too.
    """
    return CagePolicy(environment={**gpu_environment(uuid, target), **environment}, preload=(*_PRELOAD, *preload))


def build_environment(target: str) -> dict[str, str]:
    """Return the variables that hide the GPU from children that compile, and tell NVRTC its architecture."""
    return {"CUDA_VISIBLE_DEVICES": "", "WARPWRIGHT_CUDA_TARGET": target}


def gpu_environment(uuid: str, target: str) -> dict[str, str]:
    """Return the variables of a caged CUDA child. libcuda has been loaded."""
    folder = _driver_folder()
    return {
        "WARPWRIGHT_NATIVE_CACHE": "/job/native:/tmp/native",
        "CUDA_VISIBLE_DEVICES": uuid,
        "CUDA_MODULE_LOADING": "LAZY",
        # This GPU's name for torch's extension builder, which then need not see the GPU: "9.0a".
        "TORCH_CUDA_ARCH_LIST": re.sub(r"sm_(\d+)(\d)(a?)", r"\1.\2\3", target),
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False",
        **({"LD_LIBRARY_PATH": folder, "TRITON_LIBCUDA_PATH": folder} if folder else {}),
    }


def _driver_folder() -> str | None:
    """Return the folder of the libcuda that this process uses."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if Path(path).name.startswith("libcuda.so"):
            return str(Path(path).parent)
    return None
