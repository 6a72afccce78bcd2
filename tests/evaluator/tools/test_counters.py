"""Nsight Compute's reports as values: sample text in the format of `ncu --csv --page raw`; no counters, no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.stages import profile
from evaluator.stages.judge import Judge
from evaluator.tools import counters, tool
from evaluator.tools.tool import NCU, ToolRun
from evaluator.types import DeviceKind
from tests.evaluator import stand_ins
from tests.evaluator.rooms import CPP, candidate, problem

_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_COLUMNS = {
    "gpu__time_duration.sum": ("nsecond", "12,288"),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "71.23"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "23.5"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "88.04"),
    "lts__t_sector_hit_rate.pct": ("%", "33.33"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": ("", "1,024"),
    _STALL.format("long_scoreboard"): ("inst", "6.0"),
    _STALL.format("barrier"): ("inst", "3.0"),
    _STALL.format("wait"): ("inst", "0.75"),
    _STALL.format("short_scoreboard"): ("inst", "0.25"),
    _STALL.format("selected"): ("inst", "1.0"),
    _STALL.format("long_scoreboard_not_issued"): ("inst", "5.5"),
}
_FIXED = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
)  # fmt: skip


def _line(values: list[str]) -> str:
    return ",".join(f'"{value}"' for value in values)


def report(*kernels: str, **changed: str) -> str:
    """Return ncu's output for launches of these kernels; `changed` replaces a metric's number by our name for it."""
    ours = {counters._METRICS.get(name, name): value for name, value in changed.items()}
    numbers = [ours.get(metric, number) for metric, (_, number) in _COLUMNS.items()]
    rows = [
        _line(
            [
                str(n),
                "4711",
                "python3.12",
                "127.0.0.1",
                kernel,
                "1",
                "7",
                "(256, 1, 1)",
                "(2048, 1, 1)",
                "0",
                "9.0",
                *numbers,
            ]
        )
        for n, kernel in enumerate(kernels)
    ]
    units = _line([""] * len(_FIXED) + [unit for unit, _ in _COLUMNS.values()])
    return "\n".join(
        [
            "==WARNING== Note: Running with unmodified GPU clocks.",
            "==PROF== Connected to process 4711 (/usr/bin/python3.12)",
            *(
                f'==PROF== Profiling "{kernel}" - {n}: 0%....50%....100% - 12 passes'
                for n, kernel in enumerate(kernels)
            ),
            "==PROF== Disconnected from process 4711",
            _line([*_FIXED, *_COLUMNS]),
            units,
            *rows,
            "",
        ]
    )


def test_a_report_is_read() -> None:
    (found,) = counters.parse(report("void add_rmsnorm<float>(float const *, int)"))
    assert (found.name, found.launches, found.time_us) == ("add_rmsnorm", 1, 12.288)
    assert found.values == {
        "dram_percent": 71.23, "sm_percent": 23.5, "occupancy_percent": 88.04, "l2_hit_percent": 33.33,
        "bank_conflicts": 1024.0,
    }  # fmt: skip
    assert found.stalls == {"long_scoreboard": 0.6, "barrier": 0.3, "wait": 0.075}
    for words in ("add_rmsnorm", "DRAM throughput 71 %", "bank conflicts 1024", "long_scoreboard 60%"):
        assert words in found.text
    assert counters.resources([found], "")["counters"] == [found.text]


def test_launches_of_one_kernel_are_one_entry() -> None:
    found = counters.parse(report("first", "second", "first"))
    assert [(kernel.name, kernel.launches) for kernel in found] == [("first", 2), ("second", 1)]
    assert found[0].time_us == pytest.approx(2 * 12.288)


def test_rows_that_are_cut_off_are_left_out() -> None:
    whole = report("first", "second", "third")
    lines = whole.splitlines()
    cut = "\n".join([*lines[:-2], lines[-2][:150], lines[-1][200:]])
    assert [kernel.name for kernel in counters.parse(whole)] == ["first", "second", "third"]
    assert [kernel.name for kernel in counters.parse(cut)] == ["first"]


@pytest.mark.parametrize("number", ["n/a", "", "nan", "inf", "-1", "no data"])
def test_a_number_that_is_none_is_left_out(number: str) -> None:
    (found,) = counters.parse(report("first", dram_percent=number))
    assert "dram_percent" not in found.values
    assert found.values["sm_percent"] == 23.5


@pytest.mark.parametrize("text", ["", "==WARNING== No kernels were profiled.", '"ID"', '"Kernel Name"\n"x"', '"' * 50])
def test_what_is_no_report_has_no_kernels(text: str) -> None:
    assert counters.parse(text) == []


@given(st.text(alphabet='"IDKernel Name,\n%.0123456789aé\\', max_size=300))
def test_no_text_is_too_strange_to_read(text: str) -> None:
    counters.parse(text)
    counters.parse(report("first") + text)


@pytest.mark.parametrize(
    ("ran", "why"),
    [
        (
            ToolRun(exit=1, output="==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access"),
            "ERR_NVGPUCTRPERM",
        ),
        (ToolRun(exit=255, log="==ERROR== Failed to initialize the profiler: LibraryNotLoaded"), "LibraryNotLoaded"),
        (
            ToolRun(
                exit=1, log="==WARNING== Note: Running with unmodified clocks\n==WARNING== No kernels were profiled."
            ),
            "No kernels",
        ),
        (ToolRun(exit=None, duration_s=60), "not done within 60 s"),
        (ToolRun(failed="CageError: no cage"), "no cage"),
        (ToolRun(exit=-11), "status -11"),
        (ToolRun(exit=1, words={"error": "RuntimeError: no"}), "RuntimeError"),
    ],
)
def test_why_there_are_no_counters(ran: ToolRun, why: str) -> None:
    assert why in tool.why_no_counters(ran)
    assert counters.resources([], tool.why_no_counters(ran))["no counters"]


@pytest.mark.parametrize("denied", [False, True])
def test_a_profile_shows_counters_or_why_not(judge: Judge, monkeypatch, tmp_path: Path, denied: bool) -> None:
    """The cage and the calls are real, the CPU's backend passes for a GPU's, and a stand-in for the tool."""
    log = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n" if denied else report("rmsnorm")
    monkeypatch.setenv(NCU.variable, str(stand_ins.install(tmp_path / "bin", "ncu", ncu=log)))
    monkeypatch.setattr(profile, "COUNTED", (DeviceKind.CPU,))
    broken = judge.tool_history.broken
    broken.clear()
    found = profile.profile(judge, problem(), candidate(CPP, head=""))
    text = profile.render(found)
    if denied:
        assert found.counters == ()
        assert "no hardware counters: ERR_NVGPUCTRPERM" in text
        assert "ERR_NVGPUCTRPERM" in counters.unavailable(broken)
    else:
        assert found.counters[0].name == "rmsnorm"
        assert "counted: rmsnorm: DRAM throughput 71 %" in text
        assert not broken
