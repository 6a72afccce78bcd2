"""Make a new child ready for a device, before it has any user code."""

from __future__ import annotations

from evaluator.errors import CageError, ChildFault
from evaluator.sandbox.process import ChildProcess, PendingRequest

_SET_UP_S = 30.0


def send_setup(child: ChildProcess, device: str, threads: int) -> PendingRequest:
    """Ask a new child to make itself ready for a device. Raise ChildFault."""
    return child.send_request("setup", timeout_s=_SET_UP_S, device=device, threads=threads)


def set_up(child: ChildProcess, device: str, threads: int) -> None:
    """Make a new child ready for a device. No user code runs, so a failure is ours or the machine's.

    Raise CageError.
    """
    try:
        child.receive_reply(send_setup(child, device, threads))
    except ChildFault as fault:
        raise CageError(f"a new child does not start on {device}: {fault}. {fault.output[-500:]}") from fault
