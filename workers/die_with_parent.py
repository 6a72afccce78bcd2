"""Become PROGRAM, killed by the kernel with its parent: `python die_with_parent.py PARENT_PID PROGRAM [ARG ...]`.

It is run by path under `python -S -E`, to start in milliseconds. The parent may have died before the request, so its
id is checked once more. The kernel ties the process to the thread that started it: start it from one that lives on.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, program: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(f"{program[0]}: not started, its parent is gone")
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
