"""Start a program that cannot outlive the one that started it: `python bound.py PARENT SIGNAL CPUS PROGRAM [ARG ...]`.

The kernel is asked to send SIGNAL to this process when its parent (a process id) goes away, for whatever reason; then
PROGRAM takes this process over, on the processors CPUS (numbers with commas; empty: as it is). The parent may have died
before the request was made, so that is looked at once more. Linux alone knows this request; elsewhere the program is
started all the same, and the parent's own clean-up must do. Standard library only, so that it starts in milliseconds
under `python -S -E`.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, signal_number, cpus, program = int(arguments[0]), int(arguments[1]), arguments[2], arguments[3:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(f"{program[0]}: not started, its parent is gone")
        if cpus:
            os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
