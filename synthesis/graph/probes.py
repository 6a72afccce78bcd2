"""Sizes that the visible workloads do not tell apart, and further workloads that do.

Sizes that agree on every workload count as the same size, and a size that is always one as no dimension. Where
two of a problem's own sizes agree by chance, a kernel would read the wrong one on other workloads. So the reference is
traced once more with one of them changed; a change that it cannot take, or that leads it elsewhere, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.aten import Graph
from synthesis.graph.program import read_program

MOST = 12  # more are a graph each, and a reply has a limit


def probes(workloads: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return further workloads, the better ones of each size first: half of it, which stays within what kernels are
    made for, then twice."""
    found: list[dict[str, Any]] = []
    names = {w["name"] for w in workloads}
    for key in _unclear([w["sizes"] for w in workloads]):
        first = workloads[0]["sizes"]
        value = first[key]
        for number in [value // 2, value * 2] if value % 2 == 0 and value > 2 else [value * 2]:
            name = f"probe {key} {number}"
            if name not in names:
                found.append({"name": name, "size": key, "sizes": {**first, key: number}})
    return found[:MOST]


def _unclear(sizes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sizes that agree with another on every workload, or are always one. With a single workload every size
    looks constant beside a probe, so then all are probed or none."""
    vectors: dict[str, tuple[Any, ...]] = {}
    for key in sizes[0] if sizes else ():
        vector = tuple(s.get(key) for s in sizes)
        if all(type(v) is int and v > 0 for v in vector):
            vectors[key] = vector
    listed = list(vectors.values())
    unclear = [k for k, v in vectors.items() if listed.count(v) > 1 or set(v) == {1}]
    return list(vectors) if unclear and len(sizes) == 1 else unclear


def join(graphs: Mapping[str, Graph], further: Sequence[Mapping[str, Any]]) -> dict[str, Graph]:
    """Return the graphs without those of the probes `further` that are not needed: one for each size stays, where the
    reference takes the same path as without it."""
    probed = {w["name"]: w["size"] for w in further}
    joined = {name: graph for name, graph in graphs.items() if name not in probed}
    done: set[str] = set()
    for name, size in probed.items():
        if name not in graphs or size in done:
            continue
        try:
            read_program({**joined, name: graphs[name]})
        except Unsupported:
            continue
        joined[name] = graphs[name]
        done.add(size)
    return joined
