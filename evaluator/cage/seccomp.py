"""Assemble the system call filter (classic BPF) from the list of calls that a child may not make.

Forbidden calls fail with EPERM, so that libraries which merely try them carry on. Calls of another architecture kill
the process. Only x86-64 is supported: `program()` returns None elsewhere. Method: seccomp(2), linux/filter.h,
linux/seccomp.h.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

# Classic BPF instruction codes (linux/bpf_common.h).
_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_EPERM = 0x00050000 | errno.EPERM
_ENOSYS = 0x00050000 | errno.ENOSYS

_AUDIT_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000

# Offsets in struct seccomp_data: nr, arch, instruction_pointer, args[6] (low word first).
_NUMBER, _ARCHITECTURE, _ARGUMENT_0 = 0, 4, 16

_NAMESPACE_FLAGS = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}
_PR_SET_DUMPABLE = 4
_AF_UNIX, _AFTER_AF_INET = 1, 3

# Call numbers from asm/unistd_64.h, by purpose.
FORBIDDEN = {
    "other processes": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "process_madvise": 440,
        "pidfd_getfd": 438, "process_mrelease": 448, "migrate_pages": 256, "move_pages": 279,
    },
    "mounts and namespaces": {
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
        "mount_setattr": 442, "name_to_handle_at": 303, "open_by_handle_at": 304, "fanotify_init": 300,
    },
    "sockets": {
        "socket": 41, "connect": 42, "accept": 43, "bind": 49, "listen": 50, "accept4": 288,
    },
    "kernel facilities": {
        "bpf": 321, "keyctl": 250, "add_key": 248, "request_key": 249, "userfaultfd": 323, "perf_event_open": 298,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "io_setup": 206, "io_submit": 209,
        "seccomp": 317, "mq_notify": 244, "personality": 135, "vhangup": 153, "syslog": 103, "acct": 163,
        "quotactl": 179, "quotactl_fd": 443, "lookup_dcookie": 212, "nfsservctl": 180, "uselib": 134,
        "modify_ldt": 154,
    },
    "the machine": {
        "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
        "create_module": 174, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171,
        "iopl": 172, "ioperm": 173, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    },
    # The judge reserves a core; a child with a wider mask would take another child's.
    "scheduling": {
        "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142, "sched_setattr": 314,
    },
    # Memory that no process limit counts.
    "uncounted memory": {
        "shmget": 29, "shmat": 30, "msgget": 68, "semget": 64, "memfd_create": 319, "memfd_secret": 447,
    },
}  # fmt: skip
_TIMER_CREATE = 222  # its signals can continue a stopped process; CUDA's driver may need it
_SOCKET, _SOCKETPAIR, _CLONE, _CLONE3, _PRCTL, _FCNTL = 41, 53, 56, 435, 157, 72
_F_SETSIG = 10  # sends any signal, SIGCONT too, when a descriptor is ready


class _Assembler:
    """Assemble instructions of fixed size. A jump gives the number of instructions to skip."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._code.append((code, if_true, if_false, value))

    def assemble(self) -> bytes:
        return b"".join(struct.pack("<HBBI", *instruction) for instruction in self._code)


def program(*, unix_sockets: bool = False, loopback: bool = False, machine: str | None = None) -> bytes | None:
    """Return the filter as an array of `struct sock_filter`, or None for an unsupported architecture.

    `unix_sockets` is for CUDA: its driver does not start without them (error 304), and in a cage they reach no service.
    `loopback` also allows IPv4 sockets, for tools that talk to their target that way. Use it only in a cage that has
    its own network.
    """
    if (machine or platform.machine()) != "x86_64":
        return None
    numbers = [n for purpose, group in FORBIDDEN.items() if purpose != "sockets" for n in group.values()]
    if not unix_sockets and not loopback:
        numbers += [*FORBIDDEN["sockets"].values(), _TIMER_CREATE]
    out = _Assembler()
    out.add(_LOAD_WORD, _ARCHITECTURE)
    out.add(_JUMP_EQUAL, _AUDIT_ARCH_X86_64, 1, 0)
    out.add(_RETURN, _KILL_PROCESS)
    out.add(_LOAD_WORD, _NUMBER)
    out.add(_JUMP_AT_LEAST, _X32_BIT, 0, 1)
    out.add(_RETURN, _KILL_PROCESS)
    _refuse(out, sorted(numbers), _EPERM)
    # clone3 passes its flags by pointer, out of a filter's sight; libc then falls back to clone.
    _refuse(out, [_CLONE3], _ENOSYS)
    _on_argument(out, _CLONE, _JUMP_ANY_BIT, _NAMESPACE_FLAGS, refuse_if=True)
    _on_argument(out, _PRCTL, _JUMP_EQUAL, _PR_SET_DUMPABLE, refuse_if=True)
    _on_argument(out, _FCNTL, _JUMP_EQUAL, _F_SETSIG, refuse_if=True, argument=1)
    for number in (_SOCKET, _SOCKETPAIR):
        if loopback:
            _on_argument(out, number, _JUMP_AT_LEAST, _AFTER_AF_INET, refuse_if=True)
        else:
            _on_argument(out, number, _JUMP_EQUAL, _AF_UNIX, refuse_if=False)
    out.add(_RETURN, _ALLOW)
    return out.assemble()


def _refuse(out: _Assembler, numbers: Sequence[int], verdict: int) -> None:
    for number in numbers:
        out.add(_JUMP_EQUAL, number, 0, 1)
        out.add(_RETURN, verdict)


def _on_argument(out: _Assembler, number: int, test: int, value: int, *, refuse_if: bool, argument: int = 0) -> None:
    """Refuse call `number` depending on a test of an argument's low word; end with the number loaded."""
    out.add(_JUMP_EQUAL, number, 0, 4)
    out.add(_LOAD_WORD, _ARGUMENT_0 + 8 * argument)
    out.add(test, value, *((0, 1) if refuse_if else (1, 0)))
    out.add(_RETURN, _EPERM)
    out.add(_RETURN, _ALLOW)
