"""The environment of children that run torch.compile. Without torch."""

from __future__ import annotations

from evaluator.types import DeviceKind

# A pool of Inductor's own compilers takes seconds to start, and several Baselines compile at once.
_COMPILE_THREADS = {DeviceKind.CPU: "1", DeviceKind.CUDA: "4"}


def compiler_environment(kind: DeviceKind) -> dict[str, str]:
    """Return the variables of children that compile Baselines of a device kind."""
    return {
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": _COMPILE_THREADS[kind],
    }
