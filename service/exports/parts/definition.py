"""A problem as a definition of FlashInfer-Trace's schema: axes, inputs (weights among them), outputs, a reference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.types import WorkloadFacts, content_hash
from service.exports.base import Export, Unsupported, file_stem
from service.exports.parts.domain import Layout, layouts
from service.exports.parts.files import forward_parameters
from service.exports.parts.origin import names, origin, text
from service.exports.parts.standalone import calling

_DTYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16", "int8", "bool")
_SOL = ("float64",)
_WHOLE = ("int64", "int32", "int16", "int8")
_RUN = """

def run({parameters}):
    model = _ww_model(({tensors}))
    with _ww_torch.no_grad():
        return _ww_torch.func.functional_call(model, {{{weights}}}, ({tensors}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A definition of a problem. `own` is the definition itself where the problem is not from a data set."""

    name: str
    op_type: str
    tensors: tuple[str, ...]
    weights: Mapping[str, str]  # names in the module, by names of inputs
    scalars: tuple[str, ...]
    inputs: tuple[str, ...]
    workloads: Mapping[str, Mapping[str, Any]]  # by names of Workloads
    own: Mapping[str, Any] | None


def describe(export: Export, *, sol: bool) -> Described:
    """Return the definition that the problem was imported from, else one made from its facts. Raise Unsupported."""
    told = origin(export.problem.source, "sol" if sol else "flashinfer")
    inputs, scalars, workloads = names(told, "inputs"), names(told, "scalars"), told.get("workloads")
    if text(told, "definition") and inputs and isinstance(workloads, dict):
        return Described(
            name=text(told, "definition"), op_type=text(told, "op_type", "other"), weights={}, own=None,
            tensors=tuple(one for one in inputs if one not in scalars), scalars=tuple(scalars), inputs=tuple(inputs),
            workloads={key: one for key, one in workloads.items() if isinstance(one, dict)},
        )  # fmt: skip
    return _made(export, sol=sol)


def _made(export: Export, *, sol: bool) -> Described:
    facts = [fact for fact in export.facts if layouts(fact.inputs) and layouts(fact.outputs)]
    if not facts:
        raise Unsupported("the problem was admitted before shapes were recorded: optimise it again")
    form = [_form(fact) for fact in facts]
    facts = [fact for fact in facts if _form(fact) == max(form, key=form.count)]
    if any(not _flat(fact) for fact in facts):
        raise Unsupported("forward takes more than tensors, which a definition cannot say: give it tensors alone")
    tensors, weights = _input_names(export, facts[0])
    axes = _Axes(facts, export)
    inputs = {
        name: axes.spec(f"input {name}", [layouts(fact.inputs)[place] for fact in facts], sol=sol)
        for place, name in enumerate(tensors)
    }
    inputs |= {
        name: axes.spec(f"weight {weights[name]}", [_weights(fact)[place][1] for fact in facts], sol=sol)
        for place, name in enumerate(weights)
    }
    whole = [name for name in tensors if inputs[name]["dtype"] in _WHOLE]
    if whole:
        raise Unsupported(
            f"{whole[0]} holds whole numbers, which that project draws from -1024 to 1023, in no range of ours"
        )
    known = len(axes.found)
    count = len(layouts(facts[0].outputs))
    outputs = {
        ("out" if count == 1 else f"out{place}"): axes.spec(
            "output", [layouts(fact.outputs)[place] for fact in facts], sol=sol
        )
        for place in range(count)
    }
    if any(len(set(values)) > 1 for values in list(axes.found)[known:]):
        raise Unsupported("an output has a size that varies with no size of an input, which a definition cannot say")
    name, op_type = file_stem(export.problem.name, export.device_kind), "warpwright"
    own = {
        "name": name, "op_type": op_type, "axes": axes.json(), "inputs": inputs, "outputs": outputs,
        "reference": _reference(export, tensors, weights), "description": f"Made by Warpwright, {export.problem_hash}",
    }  # fmt: skip
    workloads = {
        fact.workload: _workload(export, fact, axes.of(place), list(inputs)) for place, fact in enumerate(facts)
    }
    return Described(
        name=name, op_type=op_type, tensors=tuple(tensors), weights=weights, scalars=(), inputs=tuple(inputs),
        workloads=workloads, own=own,
    )  # fmt: skip


def _form(fact: WorkloadFacts) -> str:
    return repr([(one.dtype, len(one.shape)) for one in (*layouts(fact.inputs), *layouts(fact.outputs))])


def _flat(fact: WorkloadFacts) -> bool:
    items = fact.arguments.get("list") if isinstance(fact.arguments, dict) else [{"tensor": 0}]
    return isinstance(items, list) and all(isinstance(one, dict) and "tensor" in one for one in items)


def _input_names(export: Export, fact: WorkloadFacts) -> tuple[list[str], dict[str, str]]:
    _, parameters = forward_parameters(export.problem.source)
    count = len(layouts(fact.inputs))
    tensors = parameters[:count] if len(parameters) >= count else []
    if len(tensors) < count or not all(name.isidentifier() for name in tensors):
        tensors = [f"input_{place}" for place in range(count)]
    weights: dict[str, str] = {}
    for full, _ in _weights(fact):
        short = re.sub(r"\W", "_", full)
        weights[short if short not in (*tensors, *weights) else f"weight_{len(weights)}"] = full
    return tensors, weights


def _weights(fact: WorkloadFacts) -> list[tuple[str, Layout]]:
    found = []
    for line in fact.weights:
        name, _, described = line.partition(" ")
        found += [(name, layout) for layout in layouts((described,))]
    return found


class _Axes:
    """The axes by their values over the workloads: equal values are one axis, constant ones are const."""

    def __init__(self, facts: Sequence[WorkloadFacts], export: Export) -> None:
        self.found: dict[tuple[int, ...], str] = {}
        sizes = {work.name: work.sizes for work in export.problem.workloads}
        self._sizes = [sizes.get(fact.workload, {}) for fact in facts]

    def spec(self, what: str, seen: Sequence[Layout], *, sol: bool) -> dict[str, Any]:
        if seen[0].dtype not in (*_DTYPES, *(_SOL if sol else ())):
            raise Unsupported(f"the {what} is {seen[0].dtype}, which that schema does not have")
        if any(0 in one.shape for one in seen):
            raise Unsupported(f"the {what} is empty, which that schema does not have")
        return {"shape": [self._axis(values) for values in zip(*(one.shape for one in seen), strict=True)],
                "dtype": seen[0].dtype}  # fmt: skip

    def _axis(self, values: tuple[int, ...]) -> str:
        if values not in self.found:
            names = [key for key in self._sizes[0] if tuple(one.get(key) for one in self._sizes) == values]
            fixed = f"d{values[0]}" if len(set(values)) == 1 else f"n{len(self.found)}"
            name = names[0] if names and len(set(values)) > 1 else fixed
            self.found[values] = name if name not in self.found.values() else f"axis_{len(self.found)}"
        return self.found[values]

    def json(self) -> dict[str, Any]:
        return {
            name: {"type": "const", "value": values[0]} if len(set(values)) == 1 else {"type": "var"}
            for values, name in self.found.items()
        }

    def of(self, place: int) -> dict[str, int]:
        return {name: values[place] for values, name in self.found.items() if len(set(values)) > 1}


def _workload(export: Export, fact: WorkloadFacts, axes: Mapping[str, int], inputs: Sequence[str]) -> dict[str, Any]:
    key = content_hash(export.problem_hash, fact.workload)
    uuid = f"{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:32]}"
    return {"uuid": uuid, "axes": dict(axes), "inputs": {name: {"type": "random"} for name in inputs}}


def _reference(export: Export, tensors: Sequence[str], weights: Mapping[str, str]) -> str:
    """Return the problem's source with a function `run` that constructs the Model for the tensors' shapes."""
    if re.search(r"^(def|class) run\b|^run\s*=", export.problem.source, re.MULTILINE):
        raise Unsupported("the problem file defines `run` itself, a name that a definition needs: rename it there")
    state = ", ".join(f"{full!r}: {name}" for name, full in weights.items())
    call = _RUN.format(parameters=", ".join([*tensors, *weights]), tensors=", ".join(tensors) + ",", weights=state)
    return export.problem.source.strip() + "\n\n" + calling(export, kind="Model") + call
