"""Load torch's compiler before children are forked: they then compile in a second, and not in twelve.

The import must not start the NVIDIA driver, which no fork survives. torch asks NVML then whether there is a GPU
(PYTORCH_NVML_BASED_CUDA_CHECK). Importing this module raises RuntimeError where the driver was started all the same.
"""

from __future__ import annotations

import contextlib
import importlib

from evaluator.child.protocol import cuda_driver

MODULES = (
    "torch._dynamo.backends.inductor",
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.triton",
    "torch._inductor.select_algorithm",
)

for name in MODULES:
    importlib.import_module(name)


_READY_S = 20.0


def start_workers() -> None:
    """Start the processes that compile kernels in parallel, in a child that was forked.

    torch compiles alone, one kernel after the other, until they are ready.
    """
    from torch._inductor.async_compile import AsyncCompile  # noqa: PLC0415  loaded above

    AsyncCompile.warm_pool()
    with contextlib.suppress(TimeoutError):
        AsyncCompile.wait_pool_ready(_READY_S)


if cuda_driver.has_started():
    raise RuntimeError("importing torch's compiler started the NVIDIA driver, so no child can be forked")
