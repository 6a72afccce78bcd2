"""Load torch's compiler before children are forked: they then compile in a second, and not in twelve.

The import must not start the NVIDIA driver, which no fork survives. torch asks NVML then whether there is a GPU
(PYTORCH_NVML_BASED_CUDA_CHECK). Importing this module raises RuntimeError where the driver was started all the same.
"""

from __future__ import annotations

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


def start_workers() -> None:
    """Begin to start the processes that compile kernels in parallel, in a child that was forked."""
    from torch._inductor.async_compile import AsyncCompile  # noqa: PLC0415  loaded above

    AsyncCompile.warm_pool()


if cuda_driver.has_started():
    raise RuntimeError("importing torch's compiler started the NVIDIA driver, so no child can be forked")
