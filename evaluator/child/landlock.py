"""Restrict with Landlock which files a process may touch, without any namespace, where bubblewrap cannot run.

Method: landlock(7); structures from linux/landlock.h. The supported rights depend on the kernel's ABI version.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _RULE_PATH_BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ALL_FS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_FS_NOW = (1 << 16) - 1
_ALL_TCP = 3
_ALL_SCOPES = 3  # abstract UNIX sockets, signals

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return this kernel's Landlock version, 0 without Landlock."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def restrict(readable: Sequence[str], writable: Sequence[str]) -> None:
    """Confine this process and its future children to these paths (files, or folders with everything below),
    irrevocably.

    Paths that do not exist are skipped. It needs no_new_privs. Raise OSError on a kernel without Landlock.
    """
    version = abi()
    handled = _ALL_FS.get(version, _ALL_FS_NOW)
    attributes = struct.pack("<QQQ", handled, _ALL_TCP, _ALL_SCOPES)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(_CREATE_RULESET, attributes[:size], size, 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ & handled)
        for path in writable:
            _allow(ruleset, path, handled)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _ON_FILES
        _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("<Qi", rights, fd), 0)
    finally:
        os.close(fd)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)}")
    return result
