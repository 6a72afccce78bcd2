"""Read a child's memory from the judge: process_vm_readv(2), else /proc/PID/mem."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

_libc = ctypes.CDLL(None, use_errno=True)


class _IoVec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_libc.process_vm_readv.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = [
    ctypes.c_int, ctypes.POINTER(_IoVec), ctypes.c_ulong, ctypes.POINTER(_IoVec), ctypes.c_ulong, ctypes.c_ulong,
]  # fmt: skip


def read_process_memory(pid: int, address: int, into: memoryview) -> None:
    """Fill the writable, contiguous `into` with the bytes at `address` of process `pid`.

    Raise OSError if any byte is missing.
    """
    view = into.cast("B")
    if not 0 < address < 1 << 63:
        raise OSError(f"{address:#x} is not an address")
    if len(view) == 0:
        return
    target = ctypes.addressof((ctypes.c_char * len(view)).from_buffer(view))
    done = 0
    while done < len(view):
        local, remote = _IoVec(target + done, len(view) - done), _IoVec(address + done, len(view) - done)
        got = _libc.process_vm_readv(pid, local, 1, remote, 1, 0)
        if got <= 0:
            _read_through_proc(pid, address + done, view[done:])
            return
        done += got


def read_process_pieces(pid: int, addresses: Sequence[int], width: int) -> bytes:
    """Return `width` bytes at each address of process `pid`, concatenated, in one read.

    Raise OSError if any byte is missing.
    """
    if not all(0 < address < 1 << 63 for address in addresses):
        raise OSError("not an address")
    if not addresses:
        return b""
    found = bytearray(width * len(addresses))
    local = _IoVec(ctypes.addressof((ctypes.c_char * len(found)).from_buffer(found)), len(found))
    remote = (_IoVec * len(addresses))(*[_IoVec(address, width) for address in addresses])
    if _libc.process_vm_readv(pid, local, 1, remote, len(addresses), 0) != len(found):
        for index, address in enumerate(addresses):
            read_process_memory(pid, address, memoryview(found)[index * width : (index + 1) * width])
    return bytes(found)


def _read_through_proc(pid: int, address: int, view: memoryview) -> None:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        done = 0
        while done < len(view):
            got = os.preadv(fd, [view[done:]], address + done)
            if got <= 0:
                raise OSError(f"memory ends at {address + done:#x}")
            done += got
    finally:
        os.close(fd)
