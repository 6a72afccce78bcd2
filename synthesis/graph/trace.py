"""The tracer: runs a hostile reference on fake tensors and writes its aten graph as JSON.

Standard library and torch only, and no other module of ours, so that this one file can be run inside a cage:

    python -I trace.py < request.json > reply.json

Request: `{"source": str, "workloads": [{"name": str, "sizes": {...}}], "probes": [...], "train": bool}`; probes are
workloads that the reference may refuse. Reply: `{"graphs": [{...}]}` or `{"error": str}`; `graph.aten` defines and
checks a graph. The reply is a claim by hostile code: its reader limits the
size and trusts nothing.

Tensors are fake (`FakeTensorMode`), so no workload is too large. A recipe that needs real values is run for real.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import operator
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

SMALL_CONSTANT = 4096  # elements of a constant tensor that are written out


class _Function(nn.Module):
    """A plain `reference` function as a Model."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def _pick(function: Callable[..., Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that a recipe's signature names, or all of them where it takes **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return dict(sizes)
    return {p.name: sizes[p.name] for p in parameters if p.name in sizes}


def _load(source: str) -> types.ModuleType:
    module = types.ModuleType("reference")
    sys.modules["reference"] = module
    exec(compile(source, "reference.py", "exec"), module.__dict__)
    return module


def _build(module: types.ModuleType, sizes: Mapping[str, Any]) -> tuple[nn.Module, list[Any]]:
    if hasattr(module, "Model"):
        recipe = getattr(module, "get_init_inputs", None)
        init = recipe(**_pick(recipe, sizes)) if recipe else []
        model = module.Model(**init) if isinstance(init, dict) else module.Model(*init)
    else:
        model = _Function(module.reference)
    return model, list(module.get_inputs(**_pick(module.get_inputs, sizes)))


def _encode(value: Any, names: Mapping[Any, str]) -> Any:
    """Return an argument of a node as JSON: references, dtypes and non-finite floats are tagged objects."""
    if isinstance(value, torch.fx.Node):
        return {"ref": names[value]}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else {"float": str(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": value.type}
    if isinstance(value, torch.layout | torch.memory_format):
        return None
    if isinstance(value, list | tuple):
        return [_encode(item, names) for item in value]
    raise TypeError(f"an argument of type {type(value).__name__} cannot be described")


def _describe(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, torch.Tensor):
        return None
    return {"shape": [int(s) for s in value.shape], "dtype": str(value.dtype).removeprefix("torch.")}


def _values(value: Any) -> list[Any]:
    return [_describe(item) for item in value] if isinstance(value, list | tuple) else [_describe(value)]


def _constant(value: torch.Tensor) -> dict[str, Any]:
    real = getattr(value, "constant", None) if isinstance(value, FakeTensor) else value
    if real is None or real.numel() > SMALL_CONSTANT:
        return {}
    return {"data": [_encode(item, {}) for item in real.flatten().tolist()]}


def _structure(result: Any) -> tuple[str, list[str], list[Any]]:
    if isinstance(result, torch.Tensor):
        return "tensor", [], [result]
    if isinstance(result, Mapping) and all(isinstance(v, torch.Tensor) for v in result.values()):
        return "dict", [str(k) for k in result], list(result.values())
    if type(result) in (list, tuple) and all(isinstance(v, torch.Tensor) for v in result):
        return type(result).__name__, [], list(result)
    raise TypeError("forward must return a tensor, or a flat list, tuple or dict of tensors")


def _names(model: nn.Module, inputs: list[Any]) -> list[str]:
    """Return forward's names for its inputs; extra positional ones are numbered."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind in kinds]
    return (known + [f"input{i}" for i in range(len(known), len(inputs))])[: len(inputs)]


@contextlib.contextmanager
def _setting(fake: FakeTensorMode | None) -> Iterator[None]:
    with torch.no_grad(), fake or contextlib.nullcontext():
        yield


def _graph(source: str, workload: Mapping[str, Any], train: bool, fake: FakeTensorMode | None) -> dict[str, Any]:
    with _setting(fake):
        model, inputs = _build(_load(source), workload["sizes"])
        model.train(train)
        if fake is None:
            inputs = [i.contiguous() if isinstance(i, torch.Tensor) else i for i in inputs]
        state: list[tuple[str, str, torch.Tensor]] = [("parameter", n, t) for n, t in model.named_parameters()]
        state += [("buffer", n, t) for n, t in model.named_buffers()]
        found: dict[str, Any] = {}

        def call(weights: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            """Forward as a function of the weights and of the inputs that are tensors."""
            rest = iter(tensors)
            arguments = tuple(next(rest) if isinstance(i, torch.Tensor) else i for i in inputs)
            named = {name: weight for (_, name, _), weight in zip(state, weights, strict=True)}
            found["kind"], found["keys"], flat = _structure(torch.func.functional_call(model, named, arguments))
            return flat

        tensors = [i for i in inputs if isinstance(i, torch.Tensor)]
        mode: Literal["real", "fake"] = "real" if fake else "fake"
        traced = make_fx(call, tracing_mode=mode, pre_dispatch=True)([t for *_, t in state], tensors)
    heads = [(kind, name) for kind, name, _ in state]
    heads += [("input", n) for n, i in zip(_names(model, inputs), inputs, strict=True) if isinstance(i, torch.Tensor)]
    nodes, outputs = _nodes(traced, heads)
    return {
        "workload": workload["name"],
        "sizes": dict(workload["sizes"]),
        "arguments": [
            {"name": n, "tensor": isinstance(i, torch.Tensor)}
            for n, i in zip(_names(model, inputs), inputs, strict=True)
        ],
        "nodes": nodes,
        "outputs": outputs,
        "structure": found["kind"],
        "keys": found["keys"],
    }


def _nodes(traced: torch.fx.GraphModule, heads: list[tuple[str, str]]) -> tuple[list[dict[str, Any]], list[str]]:
    nodes: list[dict[str, Any]] = []
    names: dict[Any, str] = {}
    outputs: list[str] = []
    for node in traced.graph.nodes:
        names[node] = node.name
        entry: dict[str, Any] = {"name": node.name, "args": [], "kwargs": {}}
        if node.op == "output":
            outputs = [names[n] for n in node.args[0]]
            break
        if node.op == "placeholder":
            kind, target = heads.pop(0)
            entry |= {"op": kind, "target": target}
        elif node.op == "get_attr":
            value = getattr(traced, node.target)
            entry |= {"op": "constant", "target": node.target, "values": _values(value)} | _constant(value)
        elif node.target is operator.getitem:
            entry |= {"op": "getitem", "target": "", "args": _encode(node.args, names)}
        else:
            entry |= {"op": str(node.target), "target": "", "args": _encode(node.args, names)}
            entry["kwargs"] = {k: _encode(v, names) for k, v in node.kwargs.items()}
        entry.setdefault("values", _values(node.meta.get("val")))
        nodes.append(entry)
    return nodes, outputs


def trace(source: str, workload: Mapping[str, Any], *, train: bool = False) -> dict[str, Any]:
    """Return the graph of one workload. Runs the reference: only inside a cage. Exceptions of the reference pass
    through."""
    try:
        return _graph(source, workload, train, FakeTensorMode(allow_non_fake_inputs=True))
    except Exception:  # noqa: BLE001  a recipe that needs values fails in any way under fake tensors; run it for real
        return _graph(source, workload, train, None)


def _probed(request: Mapping[str, Any], train: bool) -> list[dict[str, Any]]:
    """Trace the sizes that the reference may refuse."""
    found = []
    for workload in request.get("probes", ()):
        with contextlib.suppress(Exception):
            found.append(_graph(request["source"], workload, train, FakeTensorMode(allow_non_fake_inputs=True)))
    return found


def reply(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request with graphs, or with the reference's error."""
    try:
        train = bool(request.get("train", False))
        graphs = [trace(request["source"], w, train=train) for w in request["workloads"]]
        return {"graphs": graphs + _probed(request, train)}
    except Exception as error:  # noqa: BLE001  whatever the reference raises is the answer
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


def serve(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Answer as an operation of a caged child: the request's "payload" is the JSON text of `reply`'s."""
    return reply(request)


OPS = {"trace": serve}


def main() -> None:
    """Read a request on standard input, write the reply on standard output; the reference's own prints go to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    json.dump(reply(json.load(sys.stdin)), out)
    out.flush()


if __name__ == "__main__":
    main()
