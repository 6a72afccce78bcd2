"""The tracer's answer: the aten graph of a reference on one workload. Plain values, read with limits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synthesis.errors import TraceError

MAX_BYTES = 4_000_000
MAX_NODES = 4000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_PATH = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9]+)(\.([A-Za-z_][A-Za-z0-9_]*|[0-9]+)){0,20}")
_OPERATOR = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+){0,3}")


@dataclass(frozen=True, slots=True)
class Value:
    """One tensor: its sizes in this workload and its dtype's name ("float32")."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Call:
    """One node. `op` is "input", "parameter", "buffer", "constant", "getitem" or an aten overload ("aten.add.Tensor").

    `args` and `kwargs` are JSON: {"ref": node}, {"dtype": ...}, {"device": ...}, {"float": "inf"} or plain values.
    `target` is the name in `forward` of an input, the path of a parameter or buffer. `data` holds a small constant.
    """

    name: str
    op: str
    target: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    values: tuple[Value | None, ...]
    data: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """One positional argument of `forward`; anything but a tensor is a constant of the workload."""

    name: str
    tensor: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The reference as run on one workload. `structure` is "tensor", "tuple", "list" or "dict" (with `keys`)."""

    workload: str
    sizes: Mapping[str, Any]
    source: str
    arguments: tuple[Argument, ...]
    nodes: tuple[Call, ...]
    outputs: tuple[str, ...]
    structure: str
    keys: tuple[str, ...] = ()


def read_reply(text: str, source: str) -> dict[str, Graph]:
    """Read the graphs by workload from the tracer's answer about `source`. Raise TraceError."""
    if len(text) > MAX_BYTES:
        raise TraceError(f"the traced graph is larger than {MAX_BYTES} bytes")
    try:
        reply = json.loads(text)
        if "error" in reply:
            raise TraceError(str(reply["error"]))
        graphs = [_graph(entry, source) for entry in reply["graphs"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"the tracer's answer is not a graph: {error!r}") from error
    return {graph.workload: graph for graph in graphs}


def _graph(entry: Mapping[str, Any], source: str) -> Graph:
    if len(entry["nodes"]) > MAX_NODES:
        raise TraceError(f"the reference has more than {MAX_NODES} operations")
    structure = _match(_NAME, entry["structure"])
    return Graph(
        workload=str(entry["workload"]),
        sizes=dict(entry["sizes"]),
        source=source,
        arguments=tuple(Argument(_match(_NAME, a["name"]), bool(a["tensor"])) for a in entry["arguments"]),
        nodes=tuple(_call(node) for node in entry["nodes"]),
        outputs=tuple(_match(_NAME, name) for name in entry["outputs"]),
        structure=structure,
        keys=tuple(str(key) for key in entry["keys"]),
    )


def _call(node: Mapping[str, Any]) -> Call:
    target = str(node["target"])
    if target:
        _match(_PATH, target)
    return Call(
        name=_match(_NAME, node["name"]),
        op=_match(_OPERATOR, node["op"]),
        target=target,
        args=tuple(node["args"]),
        kwargs={_match(_NAME, key): value for key, value in node["kwargs"].items()},
        values=tuple(_value(v) for v in node["values"]),
        data=tuple(node["data"]) if "data" in node else None,
    )


def _value(entry: Mapping[str, Any] | None) -> Value | None:
    if entry is None:
        return None
    shape = tuple(int(s) for s in entry["shape"])
    if any(s < 0 for s in shape):
        raise TraceError("a tensor with a negative size")
    return Value(shape, _match(_NAME, entry["dtype"]))


def _match(pattern: re.Pattern[str], text: object) -> str:
    """Check that a text is a name before it gets into generated source. Raise TraceError."""
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise TraceError(f"{text!r} is not a name")
    return text
