"""Compile a Triton Candidate without a GPU: its `forward` runs on meta tensors, and every launch becomes a compilation.

It runs in the caged child. A stand-in driver names the target, and torch.cuda tells its properties.
`JITFunction.run` compiles and records, and never launches, so nothing is computed. Control flow that reads tensor
values fails, and the real device must decide. Source of method: Triton's own warm-up path (`JITFunction.warmup`), which
needs no device when the driver is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from evaluator.child import compiler_caches
from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import TensorSpec, read_tree
from evaluator.child.triton_build.parallel import Compilations, compile_error, processes, said

_AUTOTUNE_CONFIGS = 8  # per autotuned kernel; more would only cost time

# Shared memory of one block at most, by compute capability.
_SHARED_BYTES = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 103: 232448, 120: 101376}
# Properties of a Hopper GPU, for launch heuristics (persistent grids ask for the number of SMs).
_PROPERTIES = {
    "max_shared_mem": 232448,
    "max_num_regs": 65536,
    "multiprocessor_count": 132,
    "warpSize": 32,
    "sm_clock_rate": 1980000,
    "mem_clock_rate": 3201000,
    "mem_bus_width": 6144,
}


# Multiprocessors of the usual GPU of a compute capability: Candidates fill the device with programs.
_MULTIPROCESSORS = {80: 108, 86: 84, 89: 142, 90: 132, 100: 148, 120: 188}


def _torch_stand_ins(capability: int) -> dict[str, Any]:
    """Return what torch.cuda says of a device that is not here, by the functions' names."""
    major, minor = divmod(capability, 10)
    properties = SimpleNamespace(
        name=f"a GPU of capability {major}.{minor}",
        major=major,
        minor=minor,
        multi_processor_count=_MULTIPROCESSORS.get(capability, _PROPERTIES["multiprocessor_count"]),
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=_PROPERTIES["max_num_regs"],
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=_SHARED_BYTES.get(capability, _PROPERTIES["max_shared_mem"]),
        shared_memory_per_multiprocessor=_SHARED_BYTES.get(capability, _PROPERTIES["max_shared_mem"]) + 1024,
        L2_cache_size=50 * 2**20,
        total_memory=80 * 2**30,
    )
    return {
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (major, minor),
        "get_device_name": lambda device=None: properties.name,
        "current_device": lambda: 0,
    }


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel that would run: its name, grid, warps, shared bytes, cubin and a hash of the compiled code."""

    name: str
    grid: tuple[int, ...]
    num_warps: int
    num_stages: int
    shared_bytes: int
    code_hash: str
    cubin: bytes = field(repr=False)


class _OfflineDriver:
    """Stand in for the active driver of Triton and candidates: compile for `target`, launch nothing."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.utils = SimpleNamespace(get_device_properties=lambda device: dict(_PROPERTIES))

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        del device

    def get_current_stream(self, device: int) -> int:
        del device
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("meta")

    def get_benchmarker(self) -> Callable[..., Any]:
        return lambda call, **options: [1.0, 1.0, 1.0]


@dataclass(slots=True)
class Recorded:
    """The launches that compiled, and why one did not: complete when `recording` ends.

    `error` is the compiler's, or says that a launch asks for too much: it would fail on the device, too.
    """

    launches: list[Launch] = field(default_factory=list)
    failed: str = ""
    error: str = ""


@contextmanager
def recording(capability: int = 90) -> Iterator[Recorded]:
    """Compile Triton launches for compute capability `capability` while entered, and record them.

    A launch returns before its kernel has compiled, and `forward` goes on: kernels compile at the end, in several
    processes. A compilation error ends up in the record. The stand-in driver stays for the life of the process: such a
    child never launches anything.
    """
    import triton  # noqa: PLC0415  only a child that judges Triton loads it
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.runtime.autotuner import Autotuner  # noqa: PLC0415
    from triton.runtime.jit import JITFunction  # noqa: PLC0415

    begun: list[tuple[Any, tuple[int, ...]]] = []
    compile_only = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = compile_only(self, *args, grid=grid, warmup=True, **options)
        if kernel is not None and not warmup:
            begun.append((kernel, _grid(self, grid, args, options)))
        return kernel

    def autotune(self: Any, *args: Any, **options: Any) -> Any:
        configs = self.configs[:_AUTOTUNE_CONFIGS]
        for config in configs[1:]:
            self.fn.run(*args, **{**options, "warmup": True}, **config.all_kwargs())
        return self.fn.run(*args, **options, **configs[0].all_kwargs())

    patches = (mock.patch.object(JITFunction, "run", run), mock.patch.object(Autotuner, "run", autotune))
    stand_ins = mock.patch.multiple(torch.cuda, **_torch_stand_ins(capability))
    triton.runtime.driver.set_active(_OfflineDriver(GPUTarget("cuda", capability, 32)))
    found = Recorded()
    compilations = Compilations()
    with patches[0], patches[1], stand_ins, triton.AsyncCompileMode(compilations, ignore_errors=True):
        try:
            yield found
        finally:  # AsyncCompileMode waits for them all
            compilations.run(processes())
    for kernel, grid in begun:
        try:
            found.launches.append(_launch(kernel, grid))
            found.error = found.error or _too_large(found.launches[-1], capability)
        except Exception as error:  # noqa: BLE001  compilers raise anything: the device will decide
            found.failed = said(error)
            found.error = found.error or compile_error(error)
    with ThreadPoolExecutor(processes()) as threads:
        list(threads.map(_compile_launcher, _one_of_each_signature([kernel for kernel, _ in begun])))


def _grid(function: Any, grid: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    if callable(grid):
        names = dict(zip(function.arg_names, args, strict=False))
        grid = grid({**names, **{key: value for key, value in options.items() if key in function.arg_names}})
    return tuple(int(size) for size in grid)


def _launch(begun: Any, grid: tuple[int, ...]) -> Launch:
    """Return a launch, once its kernel has compiled. Raise the compiler's error."""
    kernel = _compiled(begun)
    metadata = kernel.metadata
    return Launch(
        name=str(metadata.name),
        grid=grid,
        num_warps=int(metadata.num_warps),
        num_stages=int(getattr(metadata, "num_stages", 0)),
        shared_bytes=int(metadata.shared),
        code_hash=str(kernel.hash),
        cubin=bytes(kernel.asm["cubin"]),
    )


def _compiled(begun: Any) -> Any:
    """Return a kernel once it has compiled; one that had before is no future. Raise the compiler's error."""
    return begun.result() if hasattr(begun, "result") else begun


def _one_of_each_signature(begun: Iterable[Any]) -> list[Any]:
    """Return kernels that compiled, one for each signature: those with the same signature share a launcher."""
    found: dict[str, Any] = {}
    for one in begun:
        with suppress(Exception):  # it did not compile
            kernel = _compiled(one)
            found.setdefault(repr(kernel.src.signature), kernel)
    return list(found.values())


def _compile_launcher(kernel: Any) -> None:
    """Compile the launcher ahead: up to 3.6 Triton compiles a C module per signature at the first launch, from 3.7 on
    none."""
    from triton.backends.nvidia import driver  # noqa: PLC0415

    if hasattr(driver, "make_launcher"):
        with suppress(Exception):  # without a C compiler or libcuda it is compiled at its launch
            driver.CudaLauncher(kernel.src, kernel.metadata)


def _too_large(launch: Launch, capability: int) -> str:
    """Return the reason why a block cannot have what a launch asks for, "" if it can."""
    most = _SHARED_BYTES.get(capability)
    if most is None or launch.shared_bytes <= most:
        return ""
    return f"kernel {launch.name} needs {launch.shared_bytes} bytes of shared memory; a block can have {most}"


def triton_runtime(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Compile what Triton needs on an NVIDIA GPU for any launch, into its cache."""
    del request, fds
    from triton.backends.nvidia.driver import CudaUtils  # noqa: PLC0415

    CudaUtils()
    return {}


def compile_ahead(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Compile the kernels that the imported Candidate launches for each of "shapes" (see `Recipes.shapes`).

    They are compiled for compute capability "capability", into Triton's cache. Return {"compiled": kernels, "failed":
    why it stopped for some shapes, "error": the compiler's own, if it refused a kernel}.
    """
    del fds
    compiler_caches.restore()
    module, failed, refused = sys.modules["candidate"], "", ""
    with recording(request["capability"]) as found:
        for shapes in request["shapes"]:
            try:
                with torch.no_grad(), torch.device("meta"):
                    model = module.ModelNew(*_made(shapes["init"])).to("meta").eval()
                    model(*_made(shapes["inputs"]))
            except Exception as error:  # noqa: BLE001  code that needs values, or is wrong: the device will decide
                failed, refused = said(error), refused or compile_error(error)
    return {"compiled": len(found.launches), "failed": failed or found.failed, "error": refused or found.error}


def _made(shapes: Mapping[str, Any]) -> list[Any]:
    specs = [TensorSpec.from_json(layout) for layout in shapes["layouts"]]
    made = [torch.empty_strided(s.shape, s.stride, dtype=s.torch_dtype, device="meta") for s in specs]
    value = read_tree(shapes["tree"], made.__getitem__)
    return list(value)


OPS: dict[str, Operation] = {"triton_runtime": triton_runtime, "triton_ahead": compile_ahead}
