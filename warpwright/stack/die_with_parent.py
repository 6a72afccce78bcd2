"""Start a program that the kernel kills with its parent: `die_with_parent.py PARENT SIGNAL CPUS PROGRAM [ARG ...]`.

The kernel sends SIGNAL to this process when its parent, a process id, ends for any reason. PROGRAM then replaces this
process, on the processors CPUS (numbers with commas; empty: unchanged). The parent may have died before the request,
so its id is checked once more. The request exists on Linux alone; elsewhere the program starts without it, and the
parent's own clean-up must do. Standard library only, to start in milliseconds under `python -S -E`.
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
