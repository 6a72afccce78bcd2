"""Give a GPU tool the smallest program to observe: some device memory and one launch, through the driver alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from evaluator.child.protocol.cuda_driver import Driver
from evaluator.child.protocol.progress import Progress, run_reporting

# A kernel that does nothing, for any device.
_KERNEL = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry warp_probe() { ret; }
"""


def main() -> None:
    """Launch one kernel, or report the driver's error."""
    run_reporting(_launch)


def _launch(progress: Progress) -> None:
    driver = Driver(0)
    address = driver.allocate(1 << 20)
    progress.report(at="a launch")
    library = ctypes.CDLL("libcuda.so.1")
    number, pointer = ctypes.c_uint, ctypes.c_void_p
    library.cuModuleLoadData.argtypes = [pointer, ctypes.c_char_p]
    library.cuModuleGetFunction.argtypes = [pointer, pointer, ctypes.c_char_p]
    library.cuLaunchKernel.argtypes = [pointer, *([number] * 7), pointer, pointer, pointer]
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    steps: tuple[Callable[[], int], ...] = (
        lambda: library.cuModuleLoadData(ctypes.byref(module), _KERNEL),
        lambda: library.cuModuleGetFunction(ctypes.byref(kernel), module, b"warp_probe"),
        lambda: library.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None),
    )
    for step in steps:
        code = step()
        if code:
            raise RuntimeError(f"the driver refuses a kernel: CUresult {code}")
    driver.synchronize()
    driver.free(address)
