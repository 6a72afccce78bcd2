"""Call the CUDA driver API by ctypes, as far as judge and child need it: device memory, IPC handles, completion.

It uses the standard library only, so that the caged child and the judge share one file and need no binding package.
Everything works in the device's *primary* context, the one that torch uses. Addresses and sizes are plain ints (bytes);
IPC handles are 128 hex characters. Calls raise DriverError with the driver's own name for the code.
"""

from __future__ import annotations

import ctypes
import uuid
from functools import cache

IPC_HANDLE_BYTES = 64
BLOCK_BYTES = 2 * 1024 * 1024  # the driver shares whole 2 MiB blocks by handle: neighbours would leak
ALIGNMENT = 256  # of cudaMalloc: tensors laid out so are as aligned as new ones
_IPC_LAZY_PEER_ACCESS = 1
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CUdevice_attribute
_LIMIT_PERSISTING_L2 = 6
_OUT_OF_MEMORY = 2
_NOT_INITIALIZED = 3


class DriverError(RuntimeError):
    """A driver call failed. `code` is the CUresult, `name` its name, such as CUDA_ERROR_ILLEGAL_ADDRESS."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call, self.code, self.name = call, code, name

    @property
    def out_of_memory(self) -> bool:
        return self.code == _OUT_OF_MEMORY


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle: 64 opaque bytes, passed by value."""

    _fields_ = [("reserved", ctypes.c_ubyte * IPC_HANDLE_BYTES)]

    @classmethod
    def from_hex(cls, text: str) -> IpcHandle:
        """Read a handle from hex. Raise ValueError if it is not 64 bytes."""
        data = bytes.fromhex(text)
        if len(data) != IPC_HANDLE_BYTES:
            raise ValueError(f"an IPC handle has {IPC_HANDLE_BYTES} bytes, got {len(data)}")
        return cls.from_buffer_copy(data)

    def hex(self) -> str:
        return bytes(self.reserved).hex()


def round_to_blocks(size: int) -> int:
    """Return the least positive multiple of 2 MiB that holds `size` bytes."""
    return max(1, -(-size // BLOCK_BYTES)) * BLOCK_BYTES


@cache
def _libcuda() -> ctypes.CDLL:
    library = ctypes.CDLL("libcuda.so.1")
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    address, code = ctypes.c_uint64, ctypes.c_int
    signatures: dict[str, list[type]] = {
        "cuInit": [ctypes.c_uint],
        "cuDeviceGet": [pointer, code],
        "cuDeviceGetCount": [pointer],
        "cuDeviceGetUuid_v2": [pointer, code],
        "cuDeviceGetAttribute": [pointer, code, code],
        "cuDevicePrimaryCtxRetain": [pointer, code],
        "cuCtxSetCurrent": [pointer],
        "cuCtxSynchronize": [],
        "cuCtxSetLimit": [code, size],
        "cuCtxResetPersistingL2Cache": [],
        "cuGetErrorName": [code, ctypes.POINTER(text)],
        "cuMemAlloc_v2": [pointer, size],
        "cuMemFree_v2": [address],
        "cuMemGetInfo_v2": [pointer, pointer],
        "cuMemGetAddressRange_v2": [pointer, pointer, address],
        "cuMemcpyDtoD_v2": [address, address, size],
        "cuMemcpyHtoD_v2": [address, pointer, size],
        "cuMemcpyDtoH_v2": [pointer, address, size],
        "cuMemsetD8_v2": [address, ctypes.c_ubyte, size],
        "cuIpcGetMemHandle": [pointer, address],
        "cuIpcOpenMemHandle_v2": [pointer, IpcHandle, ctypes.c_uint],
        "cuIpcCloseMemHandle": [address],
    }
    for name, arguments in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, code
    return library


def available() -> str | None:
    """Return None if the driver answers and has a device, else the reason as text."""
    try:
        library = _libcuda()
    except OSError as error:
        return f"no NVIDIA driver library: {error}"
    result = library.cuInit(0)
    return None if result == 0 else f"the NVIDIA driver does not start: {_error_name(library, result)}"


def has_started() -> bool:
    """Return true if this process has started the driver."""
    try:
        library = _libcuda()
    except OSError:
        return False
    return bool(library.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != _NOT_INITIALIZED)


def identify(ordinal: int) -> tuple[str, str]:
    """Return a device's "GPU-..." name and the architecture that NVRTC compiles for ("sm_90a"). Make no context.

    Raise DriverError.
    """
    library = _libcuda()

    def call(name: str, *arguments: object) -> None:
        result = getattr(library, name)(*arguments)
        if result != 0:
            raise DriverError(name, result, _error_name(library, result))

    device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    major, minor = ctypes.c_int(), ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), ordinal)
    call("cuDeviceGetUuid_v2", ctypes.byref(raw), device.value)
    call("cuDeviceGetAttribute", ctypes.byref(major), _CAPABILITY_MAJOR, device.value)
    call("cuDeviceGetAttribute", ctypes.byref(minor), _CAPABILITY_MINOR, device.value)
    return f"GPU-{uuid.UUID(bytes=bytes(raw))}", f"sm_{major.value}{minor.value}{'a' if major.value >= 9 else ''}"


def _error_name(library: ctypes.CDLL, code: int) -> str:
    name = ctypes.c_char_p()
    if library.cuGetErrorName(code, ctypes.byref(name)) != 0 or name.value is None:
        return f"CUresult {code}"
    return name.value.decode()


class Driver:
    """The primary context of one device. `ordinal` counts the visible devices. Makes it current in this thread."""

    def __init__(self, ordinal: int = 0) -> None:
        self.ordinal = ordinal
        self._library = _libcuda()
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), ordinal)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device.value)
        self._context = context
        self.make_current()

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._library, name)(*arguments)
        if result != 0:
            raise DriverError(name, result, _error_name(self._library, result))

    def make_current(self) -> None:
        """Bind the context to the calling thread (each new thread needs it)."""
        self._call("cuCtxSetCurrent", self._context)

    def synchronize(self) -> None:
        """Return once all work that this process gave to the device, on any stream, is done."""
        self._call("cuCtxSynchronize")

    def forbid_persisting_l2(self) -> None:
        """Drop lines marked persisting and allow none, so that no L2 set-aside outlives a flush."""
        self._call("cuCtxResetPersistingL2Cache")
        self._call("cuCtxSetLimit", _LIMIT_PERSISTING_L2, 0)

    def memory(self) -> tuple[int, int]:
        """Return free and total device memory in bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), size)
        return address.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", address)

    def address_range(self, address: int) -> tuple[int, int]:
        """Return base and size of the allocation of `address`, as the driver knows it (opened handles too)."""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        self._call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), address)
        return base.value, size.value

    def fill(self, address: int, value: int, size: int) -> None:
        self._call("cuMemsetD8_v2", address, value, size)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy from device to device, within this context or from an opened handle."""
        self._call("cuMemcpyDtoD_v2", target, source, size)

    def write(self, target: int, data: bytes | bytearray | memoryview) -> None:
        """Copy from host to device."""
        view = bytes(data)
        self._call("cuMemcpyHtoD_v2", target, view, len(view))

    def read(self, source: int, size: int) -> bytes:
        """Copy from device to host."""
        buffer = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", buffer, source, size)
        return buffer.raw

    def export(self, base: int) -> str:
        """Return the IPC handle of an allocation, as hex. `base` must be the allocation's first byte."""
        handle = IpcHandle()
        self._call("cuIpcGetMemHandle", ctypes.byref(handle), base)
        return handle.hex()

    def open(self, handle: str) -> int:
        """Map another process's allocation, and return its address here. Raise ValueError for a bad handle."""
        address = ctypes.c_uint64()
        self._call("cuIpcOpenMemHandle_v2", ctypes.byref(address), IpcHandle.from_hex(handle), _IPC_LAZY_PEER_ACCESS)
        return address.value

    def close(self, address: int) -> None:
        """Unmap an allocation that `open` mapped."""
        self._call("cuIpcCloseMemHandle", address)


class DeviceBytes:
    """Raw device memory for `torch.as_tensor`: one uint8 axis. It keeps `owner` alive while a tensor refers to it."""

    def __init__(self, address: int, size: int, owner: object = None) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }
