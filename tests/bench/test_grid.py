"""The grid over which the judge's clock is measured, and what is summed up of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.judge import bench, grid
from evaluator.screening.restricted import is_restricted
from evaluator.types import DeviceKind, Evaluation


@pytest.mark.parametrize("kind", [DeviceKind.CPU, DeviceKind.CUDA])
def test_every_case_is_a_problem_of_its_size_with_a_candidate(kind: DeviceKind) -> None:
    for name, size in grid.cases(kind):
        operation = grid.OPERATIONS[name]
        rows, width = operation.shape(size)
        assert rows * width * 4 == size
        (workload,) = operation.problem(size, kind).workloads_for(kind)
        assert workload.sizes == {"rows": rows, "width": width}
    assert is_restricted(grid.OPERATIONS["add"].candidate("plain").source)


def test_each_piece_of_work_has_a_key_of_its_own_that_tells_it() -> None:
    keys = [key for key, kind, _ in bench.work(["grid"], 20, DeviceKind.CPU) if kind == "grid"]
    assert len(set(keys)) == len(keys) == 2 * 2 * len(grid.cases(DeviceKind.CPU))
    assert all(key.split()[1] in grid.THROUGH and key.split()[2] in grid.OPERATIONS for key in keys)


def entry(through: str, low: float, high: float, **more: Any) -> dict[str, Any]:
    known = {"kind": "grid", "operation": "add", "bytes": 4096, "promote": False, "third_opinion": {}}
    return {**known, "through": through, "ratio": (low + high) / 2, "low": low, "high": high, **more}


def test_a_band_tells_its_intervals_and_official_over_plain_times() -> None:
    told = {"eager": {"official_us": 11.0, "plain_us": 10.0, "kernels_us": 8.0}}
    found = grid.summary(
        [
            entry("judge", 0.9, 1.1),
            entry("judge", 1.1, 1.3),
            entry("confirm", 0.98, 1.02, third_opinion=told),
            {"kind": "aa", "ratio": 2.0},
        ]
    )
    assert (found["judge 4096"]["times"], found["judge 4096"]["intervals_with_1"]) == (2, 1)
    assert found["confirm 4096"]["intervals_with_1"] == 1
    assert found["official_over_plain"] == {"add 4096 eager": 1.1, "add 4096 eager kernels": 1.375}
    assert grid.summary([{"kind": "aa", "ratio": 2.0}]) == {}


def test_what_was_refused_is_recorded_with_its_reason() -> None:
    refused = SimpleNamespace(speedup=lambda against: None, verdict="TIMEOUT", reason="it hung")
    assert grid.told(cast("Evaluation", refused), "judge", 64) == {
        "through": "judge", "bytes": 64, "verdict": "TIMEOUT", "reason": "it hung",
    }  # fmt: skip
