"""NVIDIA's command line tools: find the installed ones and run one around a Candidate in a cage.

The cage is that of every child with two additions: the tool's own folders, and a loopback over which such tools talk to
their target application. The reply is a claim, like every reply of a child. Does not load torch.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.cage.policy import CagePolicy, StartMode
from evaluator.errors import CageError, ChildFault
from evaluator.sandbox.pool import ChildPool
from evaluator.tools import sanitizer_log
from evaluator.types import DeviceKind

_OPERATIONS = "evaluator.child.tool_ops"
_OFF = "off"
WORKS = "works in a cage"
_PROBE_S = 30.0
_COMPLAINTS = (re.compile(r"==ERROR==\s*(.+)"), re.compile(r"==WARNING==\s+(?!Note:|\s)(.+)"))
_GRACE_S = 20.0  # for a stopped tool to exit and its output to be read


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and its settings. The variable `variable` names its program or is "off"; `limit_variable` its seconds."""

    name: str
    program: str
    variable: str
    limit_variable: str
    limit_s: float
    toolkit: str = "/usr/local/cuda/bin"  # searched after PATH

    def find(self) -> tuple[str | None, str]:
        """Return the program's path, or None and the reason: switched off, or not found."""
        asked = os.environ.get(self.variable, "")
        if asked == _OFF:
            return None, f"switched off ({self.variable})"
        if asked:
            found = shutil.which(asked)
            return found, "" if found else f"{self.variable} names {asked[:200]}, which is no program"
        found = shutil.which(self.program) or shutil.which(self.program, path=self.toolkit)
        return found, "" if found else f"{self.program} is not installed: it comes with the CUDA toolkit"

    def seconds(self) -> float:
        """Return the time limit of one run. Raises CageError if it is not a positive number."""
        text = os.environ.get(self.limit_variable, str(self.limit_s))
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise CageError(f"{self.limit_variable} is a positive number of seconds, not {text[:40]!r}")
        return value


SANITIZER = Tool("compute-sanitizer", "compute-sanitizer", "WARPWRIGHT_SANITIZER", "WARPWRIGHT_SANITIZER_S", 60.0)
NCU = Tool("Nsight Compute", "ncu", "WARPWRIGHT_NCU", "WARPWRIGHT_NCU_S", 60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """The result of one run: the tool's `log`, the `output` of both programs, the target application's `words`.

    `exit` is the tool's status, negative for a signal, None after a timeout. `failed` says why there is nothing else:
    no cage could be built, or the child in it died.
    """

    exit: int | None = None
    log: str = ""
    output: str = ""
    words: Mapping[str, Any] = field(default_factory=dict)
    failed: str = ""
    duration_s: float = 0.0

    @property
    def done(self) -> bool:
        """Return True if the target application says that it made all its calls."""
        return self.words.get("done") is True

    @property
    def error(self) -> str:
        """Return the error that the target application reports, or ""."""
        return str(self.words.get("error", ""))[:500]


def run(
    kind: DeviceKind,
    command: Sequence[str],
    *,
    application: str,
    files: Mapping[str, bytes],
    environment: Mapping[str, str],
    limit_s: float,
    application_environment: Mapping[str, str] | None = None,
) -> ToolRun:
    """Run a tool (its program and options) around `application` ("tool_target" or "probe") in its own cage.

    Every child of the device gets `environment`; `application_environment` is for this run. Raises neither for a fault
    of the target application nor for a missing cage: `failed` tells these.
    """
    start = time.monotonic()
    policy = CagePolicy(
        preload=(_OPERATIONS,), environment=environment, start=StartMode.SPAWN,
        readable=tuple(_folders(command[0])), loopback=True,
    )  # fmt: skip
    request: dict[str, Any] = {
        "tool": list(command),
        "target": application,
        "environment": dict(application_environment or {}),
        "limit_s": limit_s,
    }
    try:
        with ChildPool(kind, policy=policy) as pool:
            if pool.level == "bare":
                return ToolRun(failed="it needs a cage with namespaces, which this machine does not support")
            with pool.start(name="tool", files=files, operations=_OPERATIONS) as child:
                reply = child.request("tool", timeout_s=limit_s + _GRACE_S, **request)
    except (CageError, ChildFault) as error:
        return ToolRun(failed=f"{type(error).__name__}: {error}"[:500], duration_s=time.monotonic() - start)
    return _read(reply, time.monotonic() - start)


def try_sanitizer() -> str:
    """Return WORKS if compute-sanitizer can watch a launch in a cage on this machine's GPU, else the reason."""
    program, why = SANITIZER.find()
    if program is None:
        return why
    ran = _probe([program, "--tool", "memcheck", "--target-processes", "application-only"])
    missing = sanitizer_log.unsupported(ran.log + ran.output)
    if ran.failed or missing:
        return ran.failed or missing
    if ran.done and sanitizer_log.complete(ran.log):
        return WORKS
    return _how_it_ended(ran, SANITIZER)


def try_counters() -> str:
    """Return WORKS if Nsight Compute can read counters of a launch in a cage on this machine's GPU, else the reason."""
    program, why = NCU.find()
    if program is None:
        return why
    metric = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    options = ["--target-processes", "application-only", "--clock-control", "none", "--metrics", metric, "--csv"]
    ran = _probe([program, *options])
    return WORKS if f'"{metric}"' in ran.log and ran.done else why_no_counters(ran)


def why_no_counters(ran: ToolRun) -> str:
    """Return why a run of Nsight Compute gave no counters, in its own words if it has some."""
    said = [m for complaint in _COMPLAINTS for m in complaint.findall(ran.log + "\n" + ran.output)]
    return ran.failed or (str(said[0])[:300] if said else _how_it_ended(ran, NCU))


def _probe(command: Sequence[str]) -> ToolRun:
    environment = {"CUDA_MODULE_LOADING": "LAZY"}
    return run(DeviceKind.CUDA, command, application="probe", files={}, environment=environment, limit_s=_PROBE_S)


def _how_it_ended(ran: ToolRun, which: Tool) -> str:
    if ran.exit is None:
        return f"not done within {ran.duration_s:.0f} s ({which.limit_variable})"
    return ran.error or f"it ended with status {ran.exit}: {last_line(ran.log) or last_line(ran.output) or 'no word'}"


def last_line(text: str) -> str:
    """Return the last line with text, without the tools' marks."""
    lines = [line.strip("= ") for line in text.splitlines() if line.strip("= ")]
    return lines[-1][:300] if lines else ""


def _read(reply: Mapping[str, Any], duration_s: float) -> ToolRun:
    code = reply.get("exit")
    return ToolRun(
        exit=code if type(code) is int else None,
        log=_text(reply.get("log")),
        output=_text(reply.get("output")),
        words=_words(_text(reply.get("words"))),
        duration_s=duration_s,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _words(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _folders(program: str) -> list[str]:
    """Return the folders that a tool's cage has to show: its own, and neighbouring ones with its parts."""
    found = {str(Path(program).parent.absolute()), str(Path(program).resolve().parent)}
    for home in {Path(program).absolute().parent.parent, Path(program).resolve().parent.parent}:
        found |= {str(path) for name in ("compute-sanitizer", "nsight-compute*") for path in home.glob(name)}
    opt = Path("/opt/nvidia/nsight-compute")  # where NVIDIA's packages put what the toolkit's `ncu` calls
    return sorted({*found, *([str(opt)] if opt.is_dir() else [])})
