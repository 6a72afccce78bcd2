"""Profiles: shares of functions on a CPU, and of kernels in a profiler's trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator import serve
from evaluator.child.profile_ops import launches
from evaluator.errors import Rejection
from evaluator.problem import read_problem
from evaluator.schema import to_json
from evaluator.stages.judge import Judge
from evaluator.stages.profile import profile, render
from evaluator.types import Verdict
from tests.evaluator.rooms import CPP, PROBLEM, candidate, eager_only, forward, problem


@pytest.mark.clock  # half a second of samples: on a busy machine few, and perhaps none in the library
def test_functions_of_a_cpu_kernel_share_its_time(judge: Judge) -> None:
    larger = PROBLEM.replace('"rows": 48, "hidden": 256', '"rows": 256, "hidden": 1024')  # else its caller is all
    found = profile(judge, read_problem(larger, "larger"), candidate(CPP, head=""))
    assert found.workload == "small"
    assert found.call_us > 0
    assert sum(part.share for part in found.parts) <= 1.0001
    assert any(part.name == "the candidate's own library" for part in found.parts)
    assert all(part.time_us <= found.call_us * 1.0001 for part in found.parts)
    assert re.search(r"[um]s a call", render(found))
    assert to_json(found)["parts"]


def test_a_wrong_kernel_and_an_unknown_workload_are_refused(judge: Judge) -> None:
    with pytest.raises(Rejection) as found:
        profile(judge, problem(), forward("return x"))
    assert found.value.verdict is Verdict.INCORRECT_VALUES
    with pytest.raises(Rejection, match="small"):
        profile(judge, problem(), candidate(CPP, head=""), "odd")  # held out: nobody is told of it


def test_a_trace_is_read_as_kernels_of_one_call() -> None:
    kernel = {"cat": "kernel", "name": "fused", "dur": 10.0, "args": {"grid": [8, 1, 1], "registers per thread": 40}}
    trace = {
        "traceEvents": [kernel, kernel, {**kernel, "name": "tail", "dur": 2.0}, {"cat": "cpu_op", "name": "aten::mm"}]
    }
    first, second = launches(trace, 2)
    assert (first["name"], first["launches"], first["time_us"], first["registers"]) == ("fused", 1.0, 10.0, 40)
    assert (second["name"], second["launches"], second["time_us"]) == ("tail", 0.5, 1.0)
    assert launches({}, 3) == []


@pytest.mark.usefixtures("workloads_alone")
def test_after_a_fault_the_device_is_probed_before_anybody_is_judged(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes: list[str] = ["", "the GPU does not answer: lost"]
    monkeypatch.setattr(judge.backend, "probe", lambda: probes.pop(0))
    for name in ("lost", "suspicious"):  # as they are now afterwards
        monkeypatch.setattr(judge, name, False)
    task, good = problem(), candidate(CPP, head="")
    assert judge.judge(task, forward("os._exit(0)"), eager_only(judge, task)).verdict is Verdict.RUNTIME_ERROR
    assert judge.judge(task, good, eager_only(judge, task)).verdict is Verdict.PASSED
    assert probes == ["the GPU does not answer: lost"]  # asked once, answered well
    assert judge.judge(task, forward("raise ValueError"), eager_only(judge, task)).verdict is Verdict.RUNTIME_ERROR
    found = judge.judge(task, good, eager_only(judge, task))
    assert found.verdict is Verdict.INTERNAL_ERROR
    assert "restarted" in found.reason
    assert judge.lost


def test_serve_ends_when_the_device_is_lost(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    del capfd  # serve takes standard output for itself

    class Lost:
        lost = True

        def warm(self, *, builds: bool) -> None:
            """Nothing to make ready."""

        def use_spare_time(self) -> bool:
            return False

        def close(self) -> None:
            """Nothing to close."""

    monkeypatch.setattr(serve, "Judge", lambda backend, protocol: Lost())
    monkeypatch.setattr(serve, "make_backend", lambda device, ahead: None)
    monkeypatch.setattr(serve, "answer", lambda judge, line, write: {"id": 1, "ok": True, "result": {}})
    asked = tmp_path / "requests"
    asked.write_text('{"id": 1, "op": "ping"}\n{"id": 2, "op": "ping"}\n', encoding="utf-8")
    monkeypatch.setattr(serve.os, "dup2", lambda source, target: target)
    with asked.open(encoding="utf-8") as requests:
        monkeypatch.setattr(serve.sys, "stdin", requests)
        assert serve.serve("cpu") == 3
