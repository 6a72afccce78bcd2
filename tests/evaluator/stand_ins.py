"""Stand-ins for NVIDIA's command line tools: programs that take the same options and leave logs in the real format."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

_PROGRAM = """#!{python} -IS
import os, signal, subprocess, sys, time
arguments = sys.argv[1:]
at = arguments.index("--log-file")
log, guest = arguments[at + 1], arguments[at + 2:]
tool = arguments[arguments.index("--tool") + 1] if "--tool" in arguments else "ncu"
logs = {logs!r}
def write(text):
    with open(log, "wb") as file:
        file.write(text)
{body}
"""

_RUN = "code = subprocess.run(guest).returncode\n"
BODIES = {
    "honest": _RUN + "write(logs[tool])\nsys.exit(code)",
    "hang": "write(logs[tool])\nsubprocess.Popen(guest)\ntime.sleep(3600)",
    "crash": "os.kill(os.getpid(), signal.SIGSEGV)",
    "garbage": "write(os.urandom(5_000_000))\nos.write(1, os.urandom(100_000))\nsys.exit(3)",
    "pipe": "os.mkfifo(log)\n" + _RUN,
    "idle": "write(logs[tool])",  # says that all is well, and never starts what it is to look at
}

MARK = "========="
CLEAN = {
    "memcheck": f"{MARK} COMPUTE-SANITIZER\n{MARK} ERROR SUMMARY: 0 errors\n",
    "racecheck": f"{MARK} COMPUTE-SANITIZER\n{MARK} RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
    "ncu": "",
}
UNSUPPORTED = f"""{MARK} COMPUTE-SANITIZER
{MARK} Error: Device not supported. Please refer to the "Supported Devices" section of the sanitizer documentation
{MARK}
{MARK} ERROR SUMMARY: 1 error
"""


def out_of_bounds(kernel: str, file: str = "candidate.py", line: int = 31) -> str:
    """memcheck's report of one write beyond an allocation, and of the API error that follows."""
    return f"""{MARK} COMPUTE-SANITIZER
{MARK} Invalid __global__ write of size 4 bytes
{MARK}     at {kernel}+0x1d0 in {file}:{line}
{MARK}     by thread (31,0,0) in block (3,0,0)
{MARK}     Access to 0x7f3b2a001000 is out of bounds
{MARK}     and is 1 bytes after the nearest allocation at 0x7f3b2a000000 of size 4,096 bytes
{MARK}
{MARK} Program hit cudaErrorLaunchFailure (error 719) on CUDA API call to cudaDeviceSynchronize.
{MARK}     Saved host backtrace up to driver entry point at error
{MARK}         Host Frame:  [0x2774ec] in libcuda.so.1
{MARK}
{MARK} ERROR SUMMARY: 2 errors
"""


def race(kernel: str, severity: str = "Error", file: str = "candidate.py") -> str:
    """racecheck's report of a write that another thread reads without a barrier."""
    return f"""{MARK} COMPUTE-SANITIZER
{MARK} {severity}: Race reported between Write access at {kernel}+0x2f0 in {file}:18
{MARK}     and Read access at {kernel}+0x460 in {file}:26 [511 hazards]
{MARK}
{MARK} RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def install(folder: Path, name: str, body: str = "honest", **logs: str) -> Path:
    """A program of that name in a new folder; `logs` are what it leaves per tool (default: nothing found)."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    path = folder / name
    texts = {key: text.encode() for key, text in {**CLEAN, **logs}.items()}
    python = os.path.realpath(sys.executable)
    path.write_text(_PROGRAM.format(python=python, logs=texts, body=BODIES[body]), encoding="utf-8")
    path.chmod(0o755 | stat.S_IXUSR)
    return path
