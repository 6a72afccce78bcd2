"""Solutions and traces of FlashInfer-Trace's schema, and of SOL-ExecBench, which forked it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.languages import adapter
from evaluator.types import Evaluation, Measurement
from service.exports.base import Export
from service.exports.parts.definition import Described
from service.exports.parts.header import header
from service.exports.parts.standalone import calling, kernel_module

AUTHOR = "warpwright"
_RUN = """

def run({parameters}):
    model = {model}
    with _ww_torch.no_grad():
        made = model({tensors})
    return tuple(made) if isinstance(made, list) else made
"""


def solution(export: Export, described: Described, *, sol: bool) -> dict[str, Any]:
    """Return a solution of one file, `main.py::run`, that returns its outputs. Raise Unsupported."""
    future, kernel = kernel_module(export, taken="run")
    tensors = ", ".join(described.tensors)
    if described.own is None:  # the definition's numbers are the constructor's arguments
        built = f"_ww_model(({tensors},), [{', '.join(described.scalars)}])"
    else:
        built = f"_ww_model(({tensors},))"
    if described.weights:
        weights = ", ".join(described.weights)
        built = f"_ww_loaded({built}, {list(described.weights.values())!r}, ({weights},))"
    text = "\n".join(
        [
            f'"""{header(export, alone=True)}"""\n',
            future + kernel + calling(export, weights=bool(described.weights), given=described.own is None),
            _RUN.format(parameters=", ".join(described.inputs), model=built, tensors=tensors).lstrip("\n"),
        ]
    )
    names = adapter(export.candidate.language).names_elsewhere
    device = export.evaluation.device.name if export.evaluation and export.evaluation.device else ""
    spec: dict[str, Any] = {
        "target_hardware": [device.replace(" ", "_") or export.device_kind.value],
        "entry_point": "main.py::run",
        "dependencies": [],
        "destination_passing_style": False,
    }
    if sol:
        spec |= {"languages": [names.get("sol", "pytorch")]}
        spec["target_hardware"] = ["B200" if "B200" in device else "LOCAL"]
    else:
        spec |= {"language": names.get("flashinfer", "python")}
    return {
        "name": solution_name(export, described), "definition": described.name, "author": AUTHOR, "spec": spec,
        "sources": [{"path": "main.py", "content": text}],
        "description": f"Kernel {export.candidate.hash[:12]}, {'confirmed' if export.confirmed else 'not confirmed'}",
    }  # fmt: skip


def solution_name(export: Export, described: Described) -> str:
    return f"{described.name}_{AUTHOR}_{export.candidate.hash[:8]}"


def traces(export: Export, described: Described, *, sol: bool) -> list[dict[str, Any]]:
    """Return a trace for each timed workload; none without measurements, or without recorded errors."""
    evaluation = export.evaluation
    correctness = evaluation.evidence.get("correctness") if evaluation else None
    if evaluation is None or not isinstance(correctness, Mapping) or "worst_relative_error" not in correctness:
        return []
    errors = {
        "max_relative_error": float(correctness["worst_relative_error"]),
        "max_absolute_error": float(correctness["worst_absolute_error"]),
        "extra": {
            "judge": AUTHOR,
            "relative_to": "the size of the element's row",
            "share_of_limit": correctness.get("worst_error_share"),
        },
    }
    found = []
    for measurement in evaluation.measurements:
        if (workload := described.workloads.get(measurement.workload)) is not None:
            told = {
                "status": "PASSED", "environment": _environment(evaluation), "timestamp": export.dated, "log": "",
                "correctness": errors, "performance": _performance(measurement),
            }  # fmt: skip
            found.append(
                {"definition": described.name, "workload": dict(workload),
                 "solution": solution_name(export, described), "evaluation": told}
            )  # fmt: skip
    return found


def _performance(measurement: Measurement) -> dict[str, float]:
    """Return the times against eager PyTorch, which is how these projects time a reference."""
    times = {one.mode: one.median_us for one in measurement.baselines}
    reference = times.get("eager") or min(times.values(), default=measurement.median_us)
    return {
        "latency_ms": measurement.median_us / 1000,
        "reference_latency_ms": reference / 1000,
        "speedup_factor": reference / measurement.median_us,
    }


def _environment(evaluation: Evaluation) -> dict[str, Any]:
    versions = evaluation.environment
    known = {"torch": versions.torch, "triton": versions.triton, "cuda": versions.cuda} if versions else {}
    device = evaluation.device.name if evaluation.device else "unknown"
    return {
        "hardware": device.replace(" ", "_") or "unknown",
        "libs": {key: value for key, value in known.items() if value},
    }
