"""The reference's graph as a prompt shows it: operations with their tensors, bytes and floating-point operations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from prompts import GraphNote, OperationNote
from synthesis import Graph
from synthesis.graph.aten import Call, Value

_HEADS = frozenset({"input", "parameter", "buffer", "constant", "getitem"})
_VIEWS = re.compile(
    r"aten\.(_unsafe_view|_reshape_alias|alias|as_strided|chunk|detach|diagonal|expand|lift_fresh_copy|permute|reshape|"
    r"select|slice|split|split_with_sizes|squeeze|sym_size|t|transpose|unbind|unflatten|unsqueeze|view)\b"
)
_PRODUCTS = re.compile(r"aten\.(mm|bmm|addmm|baddbmm|matmul|linear)\b")
_BITS = re.compile(r"(?:b?float|u?int|complex)(\d+)")


def graph_note(graphs: Mapping[str, Graph]) -> GraphNote | None:
    """Return the graph of the Workload that moves most bytes, None if nothing is known of it."""
    notes = [GraphNote(workload=name, operations=tuple(_operations(graph))) for name, graph in graphs.items()]
    return max(notes, key=lambda note: sum(one.bytes for one in note.operations), default=None)


def _operations(graph: Graph) -> Iterator[OperationNote]:
    known = {call.name: call.values for call in graph.nodes}
    for call in graph.nodes:
        if call.op in _HEADS or _VIEWS.match(call.op):
            continue
        read = [value for name in _references([*call.args, *call.kwargs.values()]) for value in known.get(name, ())]
        inputs = [value for value in read if value is not None]
        outputs = [value for value in call.values if value is not None]
        if outputs:
            yield OperationNote(
                name=call.op.removeprefix("aten."),
                inputs=", ".join(map(_text, inputs)) or "nothing",
                output=", ".join(map(_text, outputs)),
                bytes=sum(map(_bytes, [*inputs, *outputs])),
                flops=_flops(call, inputs, outputs),
            )


def _references(value: Any) -> Iterator[str]:
    """Yield the names of the nodes in a call's arguments, each once."""
    seen: dict[str, None] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, Mapping):
            if isinstance(one.get("ref"), str):
                seen[one["ref"]] = None
            else:
                waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
    yield from seen


def _flops(call: Call, inputs: list[Value], outputs: list[Value]) -> int:
    """Return the operations of a matrix product; 0 for everything else."""
    if not _PRODUCTS.match(call.op):
        return 0
    matrices = [value for value in inputs if len(value.shape) >= 2]
    inner = matrices[-2].shape[-1] if len(matrices) >= 2 else 0
    return 2 * inner * math.prod(outputs[0].shape)


def _bytes(value: Value) -> int:
    bits = _BITS.match(value.dtype)
    return math.prod(value.shape) * (int(bits[1]) // 8 if bits is not None else 1)


def _text(value: Value) -> str:
    return f"{value.dtype} {list(value.shape)}"
