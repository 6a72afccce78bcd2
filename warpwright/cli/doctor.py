"""`warpwright doctor`: list the parts that work on this machine and those that are missing."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from warpwright import paths
from warpwright.cli import evaluator_process
from warpwright.cli.console import err, out, print_json
from warpwright.cli.device import gpus
from warpwright.cli.readiness import disk_problem
from warpwright.errors import ExitCode, Missing
from warpwright.stack import supervisor
from warpwright.stack.valkey import find_server

TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `optimize` requires those that are `needed`; `fix` tells a person what to do."""

    name: str
    ok: bool
    detail: str
    needed: bool = True
    fix: str = ""


def doctor(*, as_json: bool) -> ExitCode:
    """Check this machine, print the findings, and return OK if `optimize` can work, else NOT_PASSED."""
    findings = [_python(), _compiler(), _valkey(), _stack(), _data_folder(), _gpu()]
    judge_code, judge_report, judge_text = _judge(as_json)
    ready = all(finding.ok for finding in findings if finding.needed) and judge_code == 0  # it can judge on some device
    if as_json:
        print_json({"ready": ready, "findings": [asdict(finding) for finding in findings], "judge": judge_report})
    else:
        for finding in findings:
            mark = "ok     " if finding.ok else ("MISSING" if finding.needed else "-      ")
            out.print(f"{mark}  {finding.name}: {finding.detail}", markup=False)
            if not finding.ok and finding.fix:
                out.print(f"         {finding.fix}", markup=False)
        out.print(judge_text.rstrip(), markup=False)
        err.print(_verdict(ready, judge_text))
    return ExitCode.OK if ready else ExitCode.NOT_PASSED


def _verdict(ready: bool, judge_text: str) -> str:
    if not ready:
        return "A required part is missing; see above."
    kinds = [kind for kind in ("cpu", "cuda") if f"judging on {kind}: yes" in judge_text]
    return f"This machine can optimise for {' and '.join(kinds)}."


def _judge(as_json: bool) -> tuple[int, Any, str]:
    arguments = ["doctor", "--json", "-"] if as_json else ["doctor"]
    try:
        code, output, errors = evaluator_process.capture(arguments, timeout_s=TIMEOUT_S)
    except Missing as error:
        return 1, {"error": str(error)}, f"MISSING  judge: {error}"
    except subprocess.TimeoutExpired:
        text = f"the judge's own checks did not end within {TIMEOUT_S:.0f} s"
        return 1, {"error": text}, f"MISSING  judge: {text}"
    if not as_json:
        return code, None, output + errors
    try:
        return code, json.loads(output), ""
    except ValueError:
        return 1, {"error": (errors or output)[-2000:]}, ""


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "Python", sys.version_info >= (3, 11), f"{version} at {sys.executable}", fix="install Python 3.11 or newer"
    )


def _compiler() -> Finding:
    found = shutil.which("g++")
    return Finding("C++ compiler", bool(found), found or "g++ not found", fix="sudo apt-get install -y g++")


def _valkey() -> Finding:
    try:
        return Finding("Valkey", True, str(find_server()))
    except Missing as error:
        return Finding("Valkey", False, "not found", fix=str(error))


def _stack() -> Finding:
    missing = [n for n in ("fastapi", "celery", "sqlalchemy", "uvicorn") if importlib.util.find_spec(n) is None]
    ok = supervisor.installed()
    detail = "API, workers and packages found" if ok else f"missing: {', '.join(missing) or 'service and workers'}"
    return Finding("embedded stack", ok, detail, fix="pip install -e '.[judge,stack]' in a checkout of Warpwright")


def _data_folder() -> Finding:
    folder = paths.default_data_dir()
    place = next(place for place in (folder, *folder.parents) if place.exists())
    free_gb = shutil.disk_usage(place).free / 1e9
    problem = disk_problem(folder)
    return Finding("data folder", not problem, f"{folder} ({free_gb:.0f} GB free)", fix=f"it {problem}")


def _gpu() -> Finding:
    found = gpus()
    detail = f"{len(found)} NVIDIA device(s)" if found else "no NVIDIA device; kernels are optimised for the CPU"
    return Finding("GPU", bool(found), detail, needed=False)
