"""Read hardware counters of a Candidate's kernels with Nsight Compute, where the machine allows it: for reports only.

Method: `ncu --csv --page raw` (NVIDIA's Nsight Compute CLI guide): a row of names, a row of units, a row a kernel.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.clean import clean_text
from evaluator.tools import tool
from evaluator.tools.sanitizer_log import base_name
from evaluator.tools.target_application import TargetApplication
from evaluator.types import DeviceKind

_METRICS = {
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
}
_TIME = "gpu__time_duration.sum"
_STALL = re.compile(r"smsp__average_(?:warps_issue|warp_latency_issue)_stalled_(\w+?)(?:_per_issue_active)?\.ratio")
_NO_STALLS = ("selected",)  # a warp that issues
_MOST_KERNELS, _TOP_STALLS = 16, 3
_OPTIONS = (
    "--target-processes", "application-only", "--profile-from-start", "off", "--clock-control", "none",
    "--launch-count", str(_MOST_KERNELS), "--section", "WarpStateStats",
    "--metrics", ",".join([_TIME, *_METRICS.values()]), "--csv", "--page", "raw", "--print-units", "base",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounters:
    """One kernel, averaged over its launches in one call.

    `values` has our names: percent of the device's peak, hits and occupancy in percent, a count of conflicts. `stalls`
    has the reasons for which warps wait most, as shares of all waiting.
    """

    name: str
    launches: int
    time_us: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    stalls: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return one line for a Proposer."""
        parts = [f"{_WORDS[key]} {value:.0f}{_UNITS.get(key, ' %')}" for key, value in self.values.items()]
        if self.stalls:
            parts.append("warps wait for " + ", ".join(f"{why} {share:.0%}" for why, share in self.stalls.items()))
        times = f" ({self.launches} launches)" if self.launches > 1 else ""
        return f"{self.name}{times}: {'; '.join(parts)}"


_WORDS = {
    "dram_percent": "DRAM throughput",
    "sm_percent": "SM throughput",
    "occupancy_percent": "achieved occupancy",
    "l2_hit_percent": "L2 hits",
    "bank_conflicts": "shared-memory bank conflicts",
}
_UNITS = {"bank_conflicts": ""}


def read(application: TargetApplication, known: dict[str, str]) -> tuple[list[KernelCounters], str]:
    """Return the counters of one call on an application's first sizes with cold caches, or none and the reason.

    `known` remembers why the counters of this machine cannot be read.
    """
    program, why = tool.NCU.find()[0], unavailable(known)
    if program is None or why:
        return [], why
    marked = application.kind is DeviceKind.CUDA  # CUDA tells the profiler when the counted call begins and ends
    ran = application.run(
        [program, *_OPTIONS], limit_s=tool.NCU.seconds(), environment={}, few=True, warm_up=2, marked=marked
    )
    found = parse(ran.log)
    if found:
        return found, ""
    why = tool.why_no_counters(ran)
    if _is_machine_wide(why):
        known[tool.NCU.name] = why
    return [], why


def unavailable(known: Mapping[str, str]) -> str:
    """Return the known reason why the counters of this machine cannot be read, or ""."""
    return tool.NCU.find()[1] or known.get(tool.NCU.name, "")


def _is_machine_wide(why: str) -> bool:
    """Return True if every Candidate would fail for this reason."""
    return any(word in why for word in ("ERR_NVGPUCTRPERM", "permission", "LibraryNotLoaded", "not supported"))


def parse(text: str) -> list[KernelCounters]:
    """Return the kernels in a report of `ncu --csv --page raw`, slowest first.

    Lines that are not CSV and fields that are not numbers are skipped.
    """
    rows = [row for line in text.splitlines() if line.startswith('"') for row in csv.reader([line])]
    if not rows or "Kernel Name" not in rows[0]:
        return []
    names = rows[0]
    launches: dict[str, list[dict[str, str]]] = {}
    for row in rows[1:]:
        if len(row) != len(names):  # cut off: a report may be longer than what is read of it
            continue
        one = dict(zip(names, row, strict=True))
        if one.get("ID", "").strip() and one.get("Kernel Name"):  # the row of units has no number
            launches.setdefault(base_name(one["Kernel Name"])[:200], []).append(one)
    found = [_kernel(name, all_of_it) for name, all_of_it in launches.items()]
    return sorted(found, key=lambda kernel: -(kernel.time_us or 0.0))[:_MOST_KERNELS]


def _kernel(name: str, launches: Sequence[Mapping[str, str]]) -> KernelCounters:
    values = {key: mean for key, metric in _METRICS.items() if (mean := _mean(launches, metric)) is not None}
    times_ns = [ns for one in launches if (ns := _number(one.get(_TIME))) is not None]
    return KernelCounters(
        name=clean_text(name, 200),
        launches=len(launches),
        time_us=round(sum(times_ns) / 1e3, 3) if times_ns else None,
        values={key: round(value, 2) for key, value in values.items()},
        stalls=_stalls(launches),
    )


def _stalls(launches: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return the largest shares of the time that warps wait, by reason."""
    waits: dict[str, float] = {}
    for metric in dict.fromkeys(key for one in launches for key in one):
        reason = _STALL.fullmatch(metric)
        if reason and reason[1] not in _NO_STALLS and not reason[1].endswith("_not_issued"):
            waits.setdefault(reason[1], _mean(launches, metric) or 0.0)
    total = sum(waits.values())
    top = sorted(waits.items(), key=lambda pair: -pair[1])[:_TOP_STALLS]
    return {reason: round(wait / total, 3) for reason, wait in top if wait > 0}


def _mean(launches: Iterable[Mapping[str, str]], metric: str) -> float | None:
    numbers = [value for one in launches if (value := _number(one.get(metric))) is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _number(text: str | None) -> float | None:
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def resources(found: Sequence[KernelCounters], why: str) -> dict[str, Any]:
    """Return the part that an Evaluation keeps and a prompt prints: a line per kernel, or why there is none."""
    return {"counters": [kernel.text for kernel in found[:4]]} if found else {"no counters": why}
