"""Compile and load native code in one call, for Candidates to import.

It is one file, so that an export can carry its text.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

# ---------------------------------------------------------------- C++ for the CPU through g++

# -fno-math-errno and -ffp-contract=fast let the compiler vectorise loops without changing the meaning of a formula.
_CPP_FLAGS = [
    "-std=c++17",
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-shared",
    "-fPIC",
    "-fvisibility=default",
    "-Wno-unknown-pragmas",
    "-fdiagnostics-color=never",
]
_COMPILE_LIMIT_S = 120.0


class CompileError(RuntimeError):
    """The C++ compiler failed. `line` is the first error's line in the calling file (None if unknown)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def load_cpp(source: str, *, defines: Mapping[str, Any] | None = None, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """Compile C++ with a plain C interface (`extern "C"`) and load it. Functions are attributes of the result.

    `defines` become -D macros. `flags` are added to the compiler's (for example "-funroll-loops"). A source with
    `#pragma omp` is compiled with OpenMP: give `torch.get_num_threads()` to its num_threads clause, so that it uses as
    many threads as torch. Pass tensors as `ctypes.c_void_p(t.data_ptr())` and set `argtypes`. Libraries are kept by
    content in WARPWRIGHT_NATIVE_CACHE (folders, separated as in PATH; the first writable one is written), else nowhere.
    Raise CompileError with the compiler's log; its lines are those of the calling file.
    """
    name, line = _where_written(source, sys._getframe(1).f_code.co_filename)
    openmp = ["-fopenmp"] if "pragma omp" in source else []
    macros = [f"-D{key}={_macro(value)}" for key, value in sorted((defines or {}).items())]
    options = [*_CPP_FLAGS, *openmp, *flags, *macros]
    key = hashlib.sha256("\0".join([_machine(), *options, source]).encode()).hexdigest()[:32]
    folders = _cache_folders()
    for folder in folders:
        if (folder / f"{key}.so").exists():
            return ctypes.CDLL(str(folder / f"{key}.so"))
    text, kept = f'#line {line} "{name}"\n{source}\n', _first_writable(folders)
    if kept is not None:
        return ctypes.CDLL(str(_compile_cpp(text, name, options, kept / f"{key}.so")))
    with tempfile.TemporaryDirectory(prefix="warpwright-") as private:  # a loaded library no longer needs its file
        return ctypes.CDLL(str(_compile_cpp(text, name, options, Path(private) / f"{key}.so")))


def _compile_cpp(text: str, name: str, options: Sequence[str], target: Path) -> Path:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        raise CompileError("no C++ compiler found: install g++ or set CXX")
    with tempfile.TemporaryDirectory(prefix="warpwright-cpp-") as folder:
        written, built = Path(folder) / "source.cpp", Path(folder) / "library.so"
        written.write_text(text, encoding="utf-8")
        command = [compiler, *options, "-o", str(built), str(written)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_COMPILE_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            raise CompileError(f"the compiler took more than {_COMPILE_LIMIT_S:.0f} s") from None
        if done.returncode:
            raise _cpp_error(done.stderr.decode(errors="replace").replace(str(written), name), name)
        _put_in_place(built.read_bytes(), target)
    return target


def _put_in_place(content: bytes, target: Path) -> None:
    """Write a file in one step, so that two processes that compile the same source never see half of it."""
    staged = target.with_name(f".{target.name}.{os.getpid()}")
    staged.write_bytes(content)
    staged.replace(target)


def _cpp_error(log: str, name: str) -> CompileError:
    found = re.search(rf"^(?:{re.escape(name)}):(\d+):(?:\d+:)? (?:fatal )?error: .*$", log, re.MULTILINE)
    first = found.group(0) if found else "the C++ compiler failed"
    return CompileError(f"{first}\n{log[:6000].strip()}", int(found.group(1)) if found else None)


def _cache_folders() -> list[Path]:
    folders = [Path(entry) for entry in os.environ.get("WARPWRIGHT_NATIVE_CACHE", "").split(os.pathsep) if entry]
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue  # a missing folder that cannot be made must not fail the build
    return folders


def _first_writable(folders: Sequence[Path]) -> Path | None:
    return next((folder for folder in folders if os.access(folder, os.W_OK)), None)


def _machine() -> str:
    """Return the processor's features for a library's key: -march=native depends on them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
            return "".join(sorted({line for line in info if line.startswith(("model name", "flags", "Features"))}))
    except OSError:
        return ""


def _macro(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _where_written(source: str, filename: str) -> tuple[str, int]:
    """Return the calling file's name and the line where `source` starts in it (1 if it was composed)."""
    path = Path(filename)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return path.name, 1
    at = text.find(source)
    return path.name, text.count("\n", 0, at) + 1 if at >= 0 else 1


# ---------------------------------------------------------------- CUDA C++ through NVRTC

_FALLBACK_TARGET = "sm_90a"
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_SCALARS = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}


class CompilerMissing(RuntimeError):
    """This machine has no compiler; the message names the package to install."""


class CudaError(RuntimeError):
    """The CUDA driver failed, or a launch's arguments do not fit the kernel."""


def load_cuda(source: str, *, defines: Mapping[str, Any] | None = None, flags: Sequence[str] = ()) -> CudaModule:
    """Compile CUDA C++ with NVRTC and return its kernels. Declare them `extern "C" __global__`.

    `defines` become -D macros. `flags` go to NVRTC unchanged (for example "--use_fast_math"). The target is the current
    device, or without one the value of WARPWRIGHT_CUDA_TARGET (compiling needs no GPU, launching does). Compiled code
    is kept in WARPWRIGHT_NATIVE_CACHE (see `load_cpp`). Raise CompilerMissing, or CompileError with the compiler's log;
    its lines are those of the calling file.
    """
    name, line = _where_written(source, sys._getframe(1).f_code.co_filename)
    target = _cuda_target()
    text = f'#line {line} "{name}"\n{source}'
    options = [f"--gpu-architecture={target}", "--std=c++17", "-default-device", *_include_flags(), *flags]
    options += [f"-D{key}={_macro(value)}" for key, value in (defines or {}).items()]
    key = hashlib.sha256("\0".join([str(torch.version.cuda), *options, text]).encode()).hexdigest()[:32]
    folders = _cache_folders()
    for folder in folders:
        if (folder / f"{key}.cubin").exists():
            return CudaModule((folder / f"{key}.cubin").read_bytes(), target)
    image = nvrtc_compile(text, name, options)
    own = _first_writable(folders)
    if own is not None:
        _put_in_place(image, own / f"{key}.cubin")
    return CudaModule(image, target)


class CudaModule:
    """A compiled module. `image` is its cubin. It is loaded on a device at the first launch of a kernel."""

    def __init__(self, image: bytes, target: str) -> None:
        self.image, self.target = image, target
        self._modules: dict[int, ctypes.c_void_p] = {}
        self._kernels: dict[str, CudaKernel] = {}

    def kernel(self, name: str) -> CudaKernel:
        """Return the kernel of that name. It is looked up at its first launch."""
        if name not in self._kernels:
            self._kernels[name] = CudaKernel(self, name)
        return self._kernels[name]

    def _function(self, name: str, device: int) -> ctypes.c_void_p:
        driver = _driver()
        if device not in self._modules:
            context, module = ctypes.c_void_p(), ctypes.c_void_p()
            _check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "retain the context")
            _check(driver.cuCtxSetCurrent(context), "use the context")
            _check(driver.cuModuleLoadData(ctypes.byref(module), self.image), "load the module")
            self._modules[device] = module
        function = ctypes.c_void_p()
        result = driver.cuModuleGetFunction(ctypes.byref(function), self._modules[device], name.encode())
        _check(result, f'find kernel {name!r} (is it declared extern "C" __global__?)')
        return function


class CudaKernel:
    """Launch one kernel on torch's current stream, so that events see it and CUDA graphs capture it."""

    def __init__(self, module: CudaModule, name: str) -> None:
        self.name = name
        self._module = module
        self._loaded: dict[int, tuple[ctypes.c_void_p, tuple[int, ...] | None]] = {}
        self._shared_bytes: dict[int, int] = {}

    def __call__(
        self, *, grid: Sequence[int], block: Sequence[int], args: Sequence[Any] = (), shared_bytes: int = 0
    ) -> None:
        """Launch with up to three grid and block sizes.

        Arguments are CUDA tensors (their data pointer), ints, floats, bools or ctypes values. Numbers take the width
        that the kernel declares. Raise CudaError.
        """
        driver = _driver()
        device = next((a.device.index for a in args if isinstance(a, torch.Tensor)), None)
        device = torch.cuda.current_device() if device is None else device
        if device not in self._loaded:
            function = self._module._function(self.name, device)
            self._loaded[device] = (function, _parameter_sizes(function))
        function, sizes = self._loaded[device]
        if shared_bytes > max(48 * 1024, self._shared_bytes.get(device, 0)):
            allowed = driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared_bytes)
            _check(allowed, f"allow {shared_bytes} bytes of shared memory")
            self._shared_bytes[device] = shared_bytes
        values = _pack(self.name, args, sizes)
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(v) for v in values))
        gx, gy, gz = (*grid, 1, 1, 1)[:3]
        bx, by, bz = (*block, 1, 1, 1)[:3]
        stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
        result = driver.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, pointers, None)
        if result:
            what = (
                f"launch {self.name} with grid {gx, gy, gz}, block {bx, by, bz}, {shared_bytes} bytes of shared memory"
            )
            _check(result, what)


def _pack(name: str, args: Sequence[Any], sizes: tuple[int, ...] | None) -> list[Any]:
    """Return one ctypes holder per argument, as wide as the kernel declares it (if the driver tells)."""
    if sizes is not None and len(sizes) != len(args):
        raise CudaError(f"kernel {name} takes {len(sizes)} arguments, got {len(args)}")
    widths = sizes if sizes is not None else (None,) * len(args)
    return [_holder(name, index, value, width) for index, (value, width) in enumerate(zip(args, widths, strict=True))]


def _holder(name: str, index: int, value: Any, width: int | None) -> Any:
    where = f"argument {index} of kernel {name}"
    if isinstance(value, torch.Tensor):
        if not value.is_cuda:
            raise CudaError(f"{where} is a tensor on {value.device}, not on a CUDA device")
        if width not in (None, 8):
            raise CudaError(f"{where} is a tensor, but the kernel declares {width} bytes, not a pointer")
        return ctypes.c_uint64(value.data_ptr())
    if isinstance(value, ctypes._SimpleCData | ctypes.Structure | ctypes.Array):
        return value
    if isinstance(value, float):
        if width not in (None, 4, 8):
            raise CudaError(f"{where} is a float, but the kernel declares {width} bytes")
        return ctypes.c_double(value) if width == 8 else ctypes.c_float(value)
    if isinstance(value, int):  # bool too
        bits = 8 * (width or 8)
        if width not in (None, *_SCALARS) or not -(1 << (bits - 1)) <= value < 1 << bits:
            raise CudaError(f"{where}: {value} does not fit the {width} bytes that the kernel declares")
        return ctypes.c_uint64(value & (1 << 64) - 1)  # little-endian: a narrower parameter reads the low bytes
    raise CudaError(f"{where} has type {type(value).__name__}; pass tensors, ints, floats, bools or ctypes values")


def _parameter_sizes(function: ctypes.c_void_p) -> tuple[int, ...] | None:
    """Return the bytes of each kernel parameter, or None if the driver is too old to tell (before CUDA 12.4)."""
    ask = getattr(_driver(), "cuFuncGetParamInfo", None)
    if ask is None:
        return None
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    sizes: list[int] = []
    while ask(function, ctypes.c_size_t(len(sizes)), ctypes.byref(offset), ctypes.byref(size)) == 0:
        sizes.append(size.value)
    return tuple(sizes)


@functools.cache
def _driver() -> ctypes.CDLL:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaError(f"no CUDA driver on this machine, so nothing can be launched: {error}") from None
    if not torch.cuda.is_available():
        raise CudaError("no CUDA device on this machine, so nothing can be launched")
    torch.cuda.current_device()  # creates the primary context
    pointer, number = ctypes.c_void_p, ctypes.c_uint
    driver.cuModuleLoadData.argtypes = [pointer, ctypes.c_char_p]
    driver.cuModuleGetFunction.argtypes = [pointer, pointer, ctypes.c_char_p]
    driver.cuLaunchKernel.argtypes = [pointer, *([number] * 7), pointer, pointer, pointer]
    return driver


def _check(result: int, what: str) -> None:
    if result:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(result, ctypes.byref(name))
        raise CudaError(f"cannot {what}: {name.value.decode() if name.value else result}")


def _cuda_target() -> str:
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    return os.environ.get("WARPWRIGHT_CUDA_TARGET", _FALLBACK_TARGET)


def nvrtc_compile(text: str, name: str, options: Sequence[str]) -> bytes:
    nvrtc = _nvrtc()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        result = nvrtc.nvrtcCompileProgram(program, len(options), flags)
        if result:
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(max(1, size.value))
            nvrtc.nvrtcGetProgramLog(program, log)
            why = log.value.decode(errors="replace").strip() or nvrtc.nvrtcGetErrorString(result).decode()
            # NVRTC writes "file(line): error"; g++, Python and our readers of logs use "file:line: error".
            why = re.sub(rf"^{re.escape(name)}\((\d+)\):", rf"{name}:\1:", why, flags=re.MULTILINE)
            found = re.search(rf"^{re.escape(name)}:(\d+): (?:catastrophic )?error.*$", why, re.MULTILINE)
            first = found.group(0) if found else "NVRTC failed"
            raise CompileError(f"{first}\n{why[:6000]}", int(found.group(1)) if found else None)
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, image)
        return image.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    """Load libnvrtc: the one of torch's CUDA wheels, of torch/lib, then the system's. The newest of each place comes
    first."""
    for candidate in [*_wheel_files("lib/libnvrtc.so.*"), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]:
        try:
            library = ctypes.CDLL(str(candidate))
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        library.nvrtcCompileProgram.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        library.nvrtcCreateProgram.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
        ]  # fmt: skip
        return library
    raise CompilerMissing("NVRTC is not installed (pip install nvidia-cuda-nvrtc, or PyTorch's CUDA build)")


@functools.cache
def _wheel_files(pattern: str) -> list[Path]:
    """Return files of NVIDIA's wheels (nvidia/cu13/..., nvidia/cuda_nvrtc/...) and of torch itself."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    found = [file for root in roots for file in root.glob(f"*/{pattern}")]
    found += Path(torch.__file__).parent.glob(pattern)
    version = re.match(r"\d+", torch.version.cuda or "")
    wanted = f".{version.group()}" if version else ""
    return sorted(found, key=lambda file: (wanted not in file.name, [-int(n) for n in re.findall(r"\d+", file.name)]))


@functools.cache
def _include_flags() -> tuple[str, ...]:
    """Return the include path of cuda_fp16.h and cuda_bf16.h, if they exist."""
    places = [file.parent for file in _wheel_files("include/cuda_bf16.h")]
    places += [p for p in (Path("/usr/local/cuda/include"), Path("/usr/include")) if (p / "cuda_bf16.h").exists()]
    return tuple(f"--include-path={place}" for place in places[:1])
