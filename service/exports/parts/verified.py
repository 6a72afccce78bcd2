"""Write the facts that a kernel was verified with as the Python literal that the guard reads."""

from __future__ import annotations

import re
from typing import Any

from evaluator.types import DeviceKind, Evaluation, Workload, WorkloadFacts, content_hash
from service.exports.base import Export
from service.exports.parts.domain import domain, layouts
from service.exports.parts.embed import literal

_WIDTH = 116


def operator_name(export: Export) -> str:
    """Return the namespace of the kernel's operator, which is also the module name of its reference."""
    return f"ww_{content_hash(export.problem.hash, export.candidate.hash, export.device_kind.value)[:16]}"


def verified_text(export: Export) -> str:
    """Return the source of a `dict(...)`: a row a fact, wrapped where it is longer than a line."""
    problem, facts = export.problem, {fact.workload: fact for fact in export.facts}
    found = domain(problem, export.device_kind, export.facts)
    forms, takes_arguments = found.pop("forms"), "get_init_inputs" in problem.source
    rows = {
        "module": operator_name(export),
        "train": problem.train,
        "mutates": list(problem.mutates),
        "error_budget": problem.error_budget,
        "threads": verified_threads(export),
        "capability": _capability(export.evaluation),
        **found,
    }
    lines = _wrapped([f"{name}={value!r}" for name, value in rows.items()])
    forms_text = [", ".join(f"{name!r}: {value!r}" for name, value in form.items()) for form in forms]
    lines += ["    forms=[", *(f"        {{{text}}}," for text in forms_text), "    ],"]
    workloads = [
        _workload(w, facts.get(w.name), takes_arguments=takes_arguments)
        for w in problem.workloads_for(export.device_kind)
    ]
    lines += ["    workloads=[", *(f"        {{{text}}}," for text in workloads), "    ],"]
    return "dict(\n" + "\n".join(lines) + "\n)"


def tensor_shapes(fact: WorkloadFacts) -> list[list[int]]:
    """Return the shapes of a Workload's input tensors."""
    return [list(layout.shape) for layout in layouts(fact.inputs)]


def verified_threads(export: Export) -> list[int]:
    """Return the numbers of CPU threads that the kernel was judged with, and faster; none for another device's."""
    if export.device_kind is not DeviceKind.CPU:
        return []
    if export.evaluation is None or export.evaluation.environment is None:
        return [1]
    others = [
        one["threads"]
        for one in other_threads(export.evaluation)
        if one["verdict"] == "PASSED" and one.get("low", 0) > 1
    ]
    return [export.evaluation.environment.threads or 1, *others]


def other_threads(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return what the judge found with other numbers of CPU threads than the first that was asked for."""
    return list(evaluation.evidence.get("other_threads", ()))


def _workload(workload: Workload, fact: WorkloadFacts | None, *, takes_arguments: bool) -> str:
    """Return a Workload's arguments. Where an Admission has not recorded them, there are tensors only."""
    inputs = layouts(fact.inputs) if fact else ()
    constructor, arguments = (fact.constructor, fact.arguments) if fact else (None, None)
    if constructor is None and not takes_arguments:
        constructor = {"list": []}
    values = {
        "name": repr(workload.name),
        "sizes": repr({k: v for k, v in workload.sizes.items() if k != "device"}),
        "constructor": literal(constructor, "None"),
        "arguments": literal(arguments or {"list": [{"tensor": number} for number in range(len(inputs))]}),
        "tensors": repr([(layout.dtype, layout.shape) for layout in inputs]),
    }
    return ", ".join(f"{name!r}: {text}" for name, text in values.items())


def _wrapped(items: list[str]) -> list[str]:
    lines = ["   "]
    for item in items:
        if len(lines[-1]) + len(item) + 2 > _WIDTH:
            lines.append("   ")
        lines[-1] += f" {item},"
    return lines


def _capability(evaluation: Evaluation | None) -> Any:
    facts = evaluation.device.facts if evaluation and evaluation.device else {}
    found = re.fullmatch(r"(\d+)\.(\d+)", str(facts.get("capability", "")))
    return tuple(int(part) for part in found.groups()) if found else None
