"""Give up rights from inside the cage: namespaces, mounts, limits, identity, capabilities, system calls.

This runs before any of a Candidate's code. Numbers are from the kernel's headers for x86-64 and arm64, which agree on
all those used here.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def enter_namespace(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _check(_libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()), f"mount {target}")


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Get signal `number` when the process that started this one ends."""
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of every orphaned descendant."""
    _prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def set_dumpable(on: bool) -> None:
    """Allow or forbid processes of the same user to read this one's memory."""
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, int(on))


def _prctl(what: str, option: int, second: int = 0, third: int = 0) -> None:
    _check(_libc.prctl(option, second, third, 0, 0), what)


def make_namespaces(tmp_bytes: int, links: Mapping[str, str]) -> None:
    """Make mount, host name, IPC and network namespaces with an empty /tmp, /dev/shm and /job and a /proc of its own.

    `links` maps each symbolic link of the cage to its target; those in these folders are made again. The caller is the
    first process of a new pid namespace and holds CAP_SYS_ADMIN.
    """
    unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET)
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    for name in ("sys", "sysrq-trigger", "irq", "bus"):
        _make_read_only(f"/proc/{name}")
    for folder in ("/tmp", "/dev/shm"):
        _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={tmp_bytes},mode=1777")
    _mount("tmpfs", "/job", "tmpfs", _MS_NOSUID | _MS_NODEV, "size=256m,mode=0755")
    umask = os.umask(0)  # a link's parent may also be the job's home, where the job writes
    for link, target in links.items():
        if not Path(link).is_symlink():
            Path(link).parent.mkdir(parents=True, exist_ok=True)
            Path(link).symlink_to(target)
    os.umask(umask)


def _make_read_only(path: str) -> None:
    """Protect settings of the machine. Root's user number may write them even without capabilities."""
    if os.access(path, os.F_OK):
        _mount(path, path, "", _MS_BIND)
        _mount("none", path, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def seal_job_folder() -> None:
    """Make /job read-only, once its files are there."""
    _mount("none", "/job", "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def open_job_folder() -> None:
    """Let the job write its own files into /job: it starts before they are known. No other job sees the folder."""
    Path("/job").chmod(0o777)


def set_limits(limits: Mapping[str, Any]) -> None:
    """Set resource limits, hard and soft alike. `limits` holds the fields of the judge's `Limits`."""
    values = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NPROC: limits["processes"],
        resource.RLIMIT_NOFILE: limits["descriptors"],
        resource.RLIMIT_AS: limits["address_space_bytes"],
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_MEMLOCK: 64 << 20,
    }
    for kind, value in values.items():
        _, hard = resource.getrlimit(kind)
        if value is not None:
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def drop_privileges(uid: int | None) -> None:
    """Become user `uid` (None: stay), without groups and capabilities, irrevocably."""
    bounding = [_libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) for number in range(_LAST_CAPABILITY + 1)]
    del bounding  # not every kernel knows every number; without CAP_SETPCAP nothing can be gained anyway
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = ctypes.create_string_buffer(struct.pack("<Ii", _CAPABILITY_VERSION_3, 0))
    _check(_libc.capset(header, ctypes.create_string_buffer(24)), "capset")
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


def filter_system_calls(program: bytes) -> None:
    """Install an assembled filter (8 bytes per instruction). It needs no_new_privs."""
    code = ctypes.create_string_buffer(program, len(program))
    sock_fprog = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    holder = ctypes.create_string_buffer(sock_fprog, len(sock_fprog))
    _prctl("PR_SET_SECCOMP", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(holder))
