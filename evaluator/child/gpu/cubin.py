"""Read the resources of compiled kernels from their cubin with cuobjdump: registers, shared memory and stack per
thread.

It runs in the caged child, since a cubin is a Candidate's. Triton's package includes cuobjdump, as does CUDA's toolkit.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

_LINE = re.compile(r"Function (?P<name>[^:\s]+):\s*\n\s*(?P<usage>REG:[^\n]*)")
_FIELDS = {"REG": "registers", "STACK": "stack_bytes", "SHARED": "shared_bytes", "LOCAL": "local_bytes"}
_TIMEOUT_S = 20


def resource_usage(cubin: bytes) -> list[dict[str, int | str]]:
    """Return {name, registers, stack_bytes, shared_bytes, local_bytes} per kernel; nothing without cuobjdump.

    Bytes are per thread (stack, local: spills and arrays) or per block (shared, without the dynamic part).
    """
    tool = _cuobjdump()
    if tool is None:
        return []
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    return parse_usage(done.stdout)


def parse_usage(text: str) -> list[dict[str, int | str]]:
    """Parse the report of `cuobjdump -res-usage`."""
    kernels: list[dict[str, int | str]] = []
    for match in _LINE.finditer(text):
        usage = dict(re.findall(r"(\w+)(?:\[\d+\])?:(\d+)", match["usage"]))
        kernels.append({"name": match["name"], **{_FIELDS[key]: int(usage[key]) for key in _FIELDS if key in usage}})
    return kernels


def _cuobjdump() -> str | None:
    spec = importlib.util.find_spec("triton")
    for place in (spec.submodule_search_locations or []) if spec else []:
        tool = Path(place) / "backends" / "nvidia" / "bin" / "cuobjdump"
        if tool.exists():
            return str(tool)
    return shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")
