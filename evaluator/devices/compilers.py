"""The environment of children that run torch.compile. Without torch."""

from __future__ import annotations

from evaluator.types import DeviceKind

# A pool of Inductor's own compilers takes seconds to start, and several Baselines compile at once.
_COMPILE_THREADS = {DeviceKind.CPU: "1", DeviceKind.CUDA: "4"}
# See `child.gpu.compiler`. The processes that compile kernels are forked from the children, which have all loaded.
_LOADED_BEFORE_FORK = {
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    "TORCH_WARM_POOL": "0",
    "TORCHINDUCTOR_WORKER_START": "fork",
}


def compiler_environment(kind: DeviceKind) -> dict[str, str]:
    """Return the variables of children that compile Baselines of a device kind."""
    return {
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": _COMPILE_THREADS[kind],
        **(_LOADED_BEFORE_FORK if kind is DeviceKind.CUDA else {}),
    }
