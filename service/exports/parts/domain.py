"""The inputs that a kernel was verified on, in the form that an exported file's guard reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from evaluator.types import DeviceKind, Domain, Problem, WorkloadFacts

_INPUT = re.compile(r"(\w+) \[([\d, ]*)\](?: stride \[([\d, ]*)\])?")
_COUNTABLE = 2**31 - 1
# Alignment of a tensor's address in bytes: on a CPU the judge's own, since vectors of 64 may be loaded there; on a GPU
# the widest load of a thread.
_ALIGNMENT = {DeviceKind.CPU: 64, DeviceKind.CUDA: 16}


@dataclass(frozen=True, slots=True)
class Layout:
    """One input tensor of a Workload; `stride` is None where it is contiguous."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None


def domain(problem: Problem, device_kind: DeviceKind, facts: Sequence[WorkloadFacts]) -> dict[str, Any]:
    """Return {"device", "dense", "alignment", "elements", "forms"}. A form describes inputs of equal ranks together.

    `shapes` has a row for each input, of numbers (the same in every Workload) and names (equal names are equal sizes;
    any size from 1). In a `general` domain every size is a name. `dtypes` are the combinations seen; `strides` the
    layouts of each input that is not contiguous, else empty. Facts that cannot be read are left out.
    """
    dense = problem.domain is Domain.DECLARED
    read = {fact.workload: found for fact in facts if (found := layouts(fact.inputs))}
    sizes = {workload.name: workload.sizes for workload in problem.workloads_for(device_kind)}
    # Sizes in between were tried only where a whole number among the sizes varies: else each Workload is a form alone.
    alone = dense and not _varies([sizes[name] for name in read if name in sizes])
    groups: dict[tuple[Any, ...], list[str]] = {}
    for name, inputs in read.items():
        if name in sizes:
            ranks = tuple(len(layout.shape) for layout in inputs)
            groups.setdefault((ranks, name if alone else ""), []).append(name)
    forms = [_form([read[n] for n in names], [sizes[n] for n in names], dense=dense) for names in groups.values()]
    largest = max((prod(layout.shape) for inputs in read.values() for layout in inputs), default=0)
    return {
        "device": device_kind.value,
        "dense": dense,
        "alignment": _ALIGNMENT[device_kind],
        "elements": max(_COUNTABLE, largest),
        "forms": forms,
    }


def _varies(sizes: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether Workloads differ in a whole number."""
    whole = [{key: value for key, value in one.items() if type(value) is int} for one in sizes]
    return any(one != whole[0] for one in whole)


def layouts(inputs: Sequence[str]) -> tuple[Layout, ...]:
    """Read an Admission's descriptions, such as "float32 [16, 64]". Return nothing if one of them has another form."""
    found = [_INPUT.fullmatch(text) for text in inputs]
    if not all(found):
        return ()
    return tuple(
        Layout(match[1], _numbers(match[2]), None if match[3] is None else _numbers(match[3]))
        for match in found
        if match is not None
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number.strip())


def _form(
    workloads: Sequence[tuple[Layout, ...]], sizes: Sequence[Mapping[str, Any]], *, dense: bool
) -> dict[str, Any]:
    names: dict[tuple[int, ...], str] = {}
    inputs = list(zip(*workloads, strict=True))

    def size(values: tuple[int, ...]) -> int | str:
        if dense and len(set(values)) == 1:
            return values[0]
        return names.setdefault(values, _name(values, sizes, names))

    return {
        "dtypes": _distinct([[layout.dtype for layout in inputs] for inputs in workloads]),
        "shapes": [[size(values) for values in zip(*(i.shape for i in same), strict=True)] for same in inputs],
        "strides": [
            _distinct([[list(i.shape), list(i.stride)] for i in same if i.stride is not None]) if dense else []
            for same in inputs
        ],
    }


def _distinct(items: list[list[Any]]) -> list[list[Any]]:
    return [item for number, item in enumerate(items) if item not in items[:number]]


def _name(values: tuple[int, ...], sizes: Sequence[Mapping[str, Any]], names: Mapping[tuple[int, ...], str]) -> str:
    """Return the Problem's own name for a size that takes these values, or a new one."""
    for name in sizes[0]:
        if name.isidentifier() and tuple(given.get(name) for given in sizes) == values and name not in names.values():
            return name
    return f"n{len(names)}"
