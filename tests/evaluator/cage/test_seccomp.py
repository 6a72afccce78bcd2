"""Run the system call filter in a small interpreter of classic BPF."""

from __future__ import annotations

import errno
import struct

from hypothesis import given
from hypothesis import strategies as st

from evaluator.cage import seccomp

X86_64, I386 = 0xC000003E, 0x40000003
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
CLONE, CLONE3, PRCTL, SOCKET, SOCKETPAIR, FCNTL, TIMER_CREATE = 56, 435, 157, 41, 53, 72, 222
SPECIAL = {CLONE, CLONE3, PRCTL, SOCKET, SOCKETPAIR, FCNTL, TIMER_CREATE}
FORBIDDEN = {number for group in seccomp.FORBIDDEN.values() for number in group.values()}
SOCKETS = set(seccomp.FORBIDDEN["sockets"].values())


def verdict(program: bytes, number: int, first: int = 0, architecture: int = X86_64, second: int = 0) -> int:
    """Return the kernel's action for call `number`."""
    data = struct.pack("<IIQQQ", number & 0xFFFFFFFF, architecture, 0, first, second)
    code = [struct.unpack_from("<HBBI", program, offset) for offset in range(0, len(program), 8)]
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            at += if_true if holds else if_false


def filter_for(*, cuda: bool) -> bytes:
    program = seccomp.program(unix_sockets=cuda, machine="x86_64")
    assert program is not None
    return program


@given(st.integers(0, 600), st.booleans())
def test_listed_calls_are_refused_and_all_others_pass(number: int, cuda: bool) -> None:
    refused = FORBIDDEN - SOCKETS if cuda else FORBIDDEN
    if number not in SPECIAL:
        assert verdict(filter_for(cuda=cuda), number) == (EPERM if number in refused else ALLOW)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, I386, 0xC00000B7, 2**32 - 1]))
def test_other_architectures_are_killed(number: int, architecture: int) -> None:
    assert verdict(filter_for(cuda=False), number, architecture=architecture) == KILL


@given(st.integers(0x40000000, 2**32 - 1))
def test_the_x32_calls_are_killed(number: int) -> None:
    assert verdict(filter_for(cuda=False), number) == KILL


@given(st.sampled_from([0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]))
def test_new_namespaces_cannot_be_cloned(flag: int) -> None:
    assert verdict(filter_for(cuda=False), CLONE, flag | 17) == EPERM
    assert verdict(filter_for(cuda=False), CLONE3) == ENOSYS


def test_threads_and_processes_can_be_made() -> None:
    thread, fork, vfork = 0x3D0F00, 0x1200011, 0x4111
    assert [verdict(filter_for(cuda=False), CLONE, flags) for flags in (thread, fork, vfork)] == [ALLOW] * 3


def test_calls_decided_by_their_first_argument() -> None:
    cpu, cuda = filter_for(cuda=False), filter_for(cuda=True)
    assert verdict(cpu, PRCTL, 4) == EPERM  # PR_SET_DUMPABLE would hide results from the judge
    assert verdict(cpu, PRCTL, 15) == ALLOW
    assert [verdict(cpu, SOCKETPAIR, family) for family in (1, 2, 16)] == [ALLOW, EPERM, EPERM]
    assert [verdict(cpu, SOCKET, family) for family in (1, 2, 10, 16)] == [EPERM] * 4
    assert [verdict(cuda, SOCKET, family) for family in (1, 2, 10, 16)] == [ALLOW, EPERM, EPERM, EPERM]


@given(st.integers(0, 600), st.booleans())
def test_a_loopback_opens_internet_sockets_and_nothing_else(number: int, cuda: bool) -> None:
    with_it = seccomp.program(unix_sockets=cuda, loopback=True, machine="x86_64")
    assert with_it is not None
    if number not in SPECIAL:
        assert verdict(with_it, number) == verdict(filter_for(cuda=True), number)
    assert [verdict(with_it, SOCKET, family) for family in (1, 2, 10, 16, 17)] == [ALLOW, ALLOW, EPERM, EPERM, EPERM]


def test_no_filter_for_an_unknown_architecture() -> None:
    assert seccomp.program(machine="aarch64") is None


@given(st.integers(0, 2**31 - 1), st.integers(0, 1100), st.booleans())
def test_no_descriptor_gets_a_signal_of_its_own(fd: int, command: int, cuda: bool) -> None:
    """Such a signal could continue a stopped process."""
    assert verdict(filter_for(cuda=cuda), FCNTL, fd, second=command) == (EPERM if command == 10 else ALLOW)


def test_a_timer_that_could_continue_a_stopped_process_is_refused_on_a_cpu() -> None:
    assert verdict(filter_for(cuda=False), TIMER_CREATE) == EPERM
    assert verdict(filter_for(cuda=True), TIMER_CREATE) == ALLOW
