"""Decompose traced aten graphs into a Program of primitive nodes. Operations without a rule stay library calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from synthesis.errors import LibraryCall, Unsupported
from synthesis.graph.aten import Call, Graph
from synthesis.graph.build import Builder
from synthesis.graph.nodes import HEADS, Node, Program
from synthesis.graph.sizes import Size
from synthesis.graph.unify import Unifier
from synthesis.names import RESERVED

IDENTITIES = frozenset(
    f"aten.{name}.default"
    for name in ("contiguous", "alias", "detach", "detach_", "lift_fresh", "lift_fresh_copy", "positive")
)

STATISTICS = {"aten.batch_norm.default": 5, "aten.instance_norm.default": 5}
"""Calls that change their running statistics, arguments 3 and 4, and the argument that says so."""

MISSING = object()  # a result that the rule does not compute


class Decomposer:
    """Turns the nodes of unified graphs into primitive ones, in order."""

    def __init__(
        self,
        graphs: Sequence[Graph],
        rules: Mapping[str, Callable[..., Any]],
        *,
        wide: bool = False,
        across: bool = False,
        columns: bool = False,
    ) -> None:
        self.rules = rules
        self.unifier = Unifier(graphs)
        self.build = Builder(self.unifier.one, wide=wide, across=across, columns=columns)
        self.build.reserve(RESERVED | set(self.unifier.symbols))
        self.env: dict[str, Any] = {}
        self.heads: list[Node] = []
        self.fused: list[str] = []
        self.counters: list[tuple[Node, int]] = []
        self._viewed: set[int] = set()
        self._mutating = any(_mutates(node) and not self._counts(node) for node in graphs[0].nodes)

    def run(self) -> Program:
        for calls in self.unifier.calls():
            self._node(calls)
        first = self.unifier.graphs[0]
        outputs = [self.env[name] for name in first.outputs]
        if not all(isinstance(o, Node) for o in outputs):
            raise Unsupported("an output is not a tensor")
        self._name_outputs(outputs)
        by_target = {h.fn: h for h in self.heads}
        return Program(
            heads=self.heads,
            outputs=outputs,
            structure=first.structure,
            keys=first.keys,
            arguments=tuple(a.name for a in first.arguments),
            symbols={s: (by_target[t], d) for s, (t, d) in self.unifier.symbols.items()},
            one=self.unifier.one,
            source=first.source,
            fused=self.fused,
            counters=self.counters,
        )

    def _name_outputs(self, outputs: list[Node]) -> None:
        """Call computed outputs `out`, or `out0`, `out1`, ... where there are several."""
        for number, node in enumerate(outputs):
            while node.kind == "view":
                node = node.inputs[0]
            if node.kind not in (*HEADS, "library", "item"):
                node.name = self.build.name("out" if len(outputs) == 1 else f"out{number}")

    def _node(self, calls: tuple[Call, ...]) -> None:
        call = calls[0]
        if call.op in HEADS:
            kind: Any = call.op
            dtype = self._dtype(calls, 0)
            name = call.target.replace(".", "_")
            head = Node(
                self.build.name(f"layer{name}" if name[0].isdigit() else name),
                kind,
                call.target,
                (),
                self.unifier.shape(calls),
                dtype,
            )
            self.heads.append(head)
            self.env[call.name] = head
        elif call.op == "constant":
            self.env[call.name] = self._constant(calls)
        elif call.op == "getitem":
            self.env[call.name] = self._item(calls)
        elif not call.op.startswith("aten._assert"):
            self._call(calls)

    def _constant(self, calls: tuple[Call, ...]) -> Node:
        data, shape = calls[0].data, self.unifier.shape(calls)
        if data is None or any(c.data != data for c in calls):
            raise Unsupported("a large constant tensor made in forward, or one that differs between workloads")
        values = [float(value["float"]) if isinstance(value, Mapping) else value for value in data]
        if len(values) == 1:
            return self.build.reshape(self.build.constant(values[0]), shape)
        dtype, name = self._dtype(calls, 0), self.build.name("values")
        made = ((values,), {"dtype": {"dtype": dtype}, "device": {"device": ""}})
        length = Size.literal(len(values), self.build.one)
        return self.build.reshape(Node(name, "library", "tensor", (), (length,), dtype, made), shape)

    def _item(self, calls: tuple[Call, ...]) -> Any:
        source, index = self._argument([c.args[0] for c in calls]), int(calls[0].args[1])
        if isinstance(source, list):
            return source[index]
        return Node(
            self.build.name(calls[0].name),
            "item",
            "",
            (source,),
            self.unifier.shape(calls),
            self._dtype(calls, 0),
            index,
        )

    def _call(self, calls: tuple[Call, ...]) -> None:
        call = calls[0]
        args = [self._argument([c.args[i] for c in calls]) for i in range(len(call.args))]
        kwargs = {k: self._argument([c.kwargs[k] for c in calls]) for k in call.kwargs}
        self.build.origin = call.op.split(".")[1]
        if self._counts(call) and type(args[1]) is int:  # as in every graph
            self.counters.append((args[0], args[1]))
            self.env[call.name] = MISSING
            return
        self._check_statistics(call)
        mutates = _mutates(call)
        if mutates:
            self._check_mutation(args)
        result = self._apply(calls, args, kwargs, mutates)
        self.env[call.name] = result
        if mutates:  # every name of this tensor; a copy of it is a node of its own
            for name, value in list(self.env.items()):
                if value is args[0]:
                    self.env[name] = result

    def _counts(self, call: Call) -> bool:
        """Return whether a call adds a number to a buffer of integers that nothing else reads, as to a count of
        batches."""
        if call.op != "aten.add_.Tensor" or len(call.args) != 2 or call.kwargs or type(call.args[1]) is not int:
            return False
        graph = self.unifier.graphs[0]
        target = next((n for n in graph.nodes if {"ref": n.name} == call.args[0]), None)
        if target is None or target.op != "buffer" or target.values[0] is None or target.values[0].dtype != "int64":
            return False
        return self._readers(target.name) == [call] and not self._readers(call.name)

    def _check_statistics(self, call: Call) -> None:
        """Raise Unsupported where a call changes running statistics that another one reads: their order would count."""
        place = STATISTICS.get(call.op)
        if place is None or not call.args[place]:
            return
        for argument in (call.args[3], call.args[4]):
            if isinstance(argument, Mapping) and self._readers(argument["ref"]) != [call]:
                raise Unsupported("running statistics that are used elsewhere, too")

    def _readers(self, name: str) -> list[Call | None]:
        """Return the calls that read a node, and None for a result of the reference."""
        graph, wanted = self.unifier.graphs[0], {"ref": name}
        readers: list[Call | None] = [n for n in graph.nodes if _mentions([n.args, n.kwargs], wanted)]
        return [*readers, *([None] if name in graph.outputs else [])]

    def _check_mutation(self, args: list[Any]) -> None:
        target = args[0]
        if (
            not isinstance(target, Node)
            or target.kind in (*HEADS, "view", "constant", "item")
            or id(target) in self._viewed
        ):
            raise Unsupported("a tensor that is changed in place and seen elsewhere")

    def _apply(self, calls: tuple[Call, ...], args: list[Any], kwargs: dict[str, Any], mutates: bool) -> Any:
        call = calls[0]
        if call.op in IDENTITIES:
            return args[0]
        operation = call.op.split(".")[1].removesuffix("_") if mutates else call.op.split(".")[1]
        rule = self.rules.get(operation)
        if rule is not None:
            try:
                result = rule(self, calls, *args, **kwargs)
            except (Unsupported, TypeError) as problem:
                if mutates:
                    raise Unsupported(f"{call.op}: {problem}") from problem
                if isinstance(problem, LibraryCall):
                    return self._library(calls, args, kwargs, problem.shape)
            else:
                self._note(result, args, call)
                return result
        if mutates:
            raise Unsupported(f"{call.op} changes a tensor in place")
        return self._library(calls, args, kwargs)

    def _note(self, result: Any, args: list[Any], call: Call) -> None:
        """Note views of arguments; else remember the operation for the header and name the result after its node."""
        inputs: list[Node] = []
        _collect(args, inputs)
        results = [r for r in (result if isinstance(result, list) else [result]) if isinstance(r, Node)]
        seen = [(r, a) for r in results for a in inputs if _sees(r, a)]
        self._viewed |= {id(a) for r, a in seen if r is not a}
        if seen:
            return
        self.fused.append(call.op.split(".")[1].removesuffix("_"))
        if isinstance(result, Node) and result.kind == "pointwise":
            result.name = self.build.name(call.name)

    def _library(
        self,
        calls: tuple[Call, ...],
        args: list[Any],
        kwargs: dict[str, Any],
        shape: tuple[Size, ...] | None = None,
    ) -> Node:
        call = calls[0]
        inputs: list[Node] = []
        _collect([args, kwargs], inputs)
        several = len(call.values) != 1
        if shape is None:
            shape = () if several else self.unifier.shape(calls)
        dtype = "" if several else self._dtype(calls, 0)
        name = self.build.name(call.name)
        return Node(name, "library", call.op, tuple(inputs), shape, dtype, (args, kwargs), origin=self.build.origin)

    def _dtype(self, calls: tuple[Call, ...], item: int) -> str:
        found = {c.values[item].dtype for c in calls if c.values[item] is not None}  # type: ignore[union-attr]
        if "float64" in found or any(d.startswith("complex") for d in found):
            raise Unsupported("float64 and complex tensors")
        if len(found) == 1:
            return found.pop()
        if found <= {"float32", "float16", "bfloat16"}:
            return "mixed" if "float32" in found else "halves"
        raise Unsupported(f"dtypes that differ between workloads: {sorted(found)}")

    def _argument(self, values: list[Any]) -> Any:
        first = values[0]
        if isinstance(first, list):
            if any(len(v) != len(first) for v in values):
                raise Unsupported("an argument list whose length differs between workloads")
            return [self._argument(list(column)) for column in zip(*values, strict=True)]
        if isinstance(first, Mapping):
            if "ref" in first:
                value = self.env[first["ref"]]
                if value is MISSING:
                    raise Unsupported("a result that the rule does not compute")
                return value
            if "float" in first:
                return float(first["float"])
            if "dtype" in first and len({v["dtype"] for v in values}) > 1:
                return {"dtype": "varies"}
            return first
        return self.unifier.scalar(values)

    # ---- what rules use

    def item_is_used(self, call: Call, item: int) -> bool:
        """Return whether the reference does something with one result of an operation that has several."""
        graph = self.unifier.graphs[0]
        picked = [n.name for n in graph.nodes if n.op == "getitem" and n.args == ({"ref": call.name}, item)]
        used = [{"ref": name} for name in picked if name not in graph.outputs]
        return len(used) < len(picked) or any(_mentions([n.args, n.kwargs], ref) for n in graph.nodes for ref in used)

    def copy(self, x: Node) -> Node:
        """Return a tensor of its own: another node where something is changed in place, which is free in kernels."""
        return self.build.pointwise("cast", x, dtype=x.dtype) if self._mutating else x

    def dtype(self, calls: tuple[Call, ...], item: int = 0) -> str:
        return self._dtype(calls, item)

    def shape(self, calls: tuple[Call, ...], item: int = 0) -> tuple[Size, ...]:
        return self.unifier.shape(calls, item)

    def quotient(self, whole: Size, part: Size, value: int | Size) -> Size:
        """Return whole // part, computed from the two sizes at run time where both are known by name."""
        if whole.symbols() and part.symbols() and whole.divisible(part):
            return whole // part
        return value if isinstance(value, Size) else Size.literal(value, self.build.one)

    def start(self, calls: tuple[Call, ...], argument: int, extent: Size) -> Size:
        """Return an index argument as a non-negative number not larger than `extent`, per workload."""
        raw = [c.args[argument] if len(c.args) > argument else 0 for c in calls]
        values = [0 if v is None else v for v in raw]
        return self.unifier.size(
            tuple(min(max(v + n if v < 0 else v, 0), n) for v, n in zip(values, extent.values, strict=True))
        )


def _mutates(call: Call) -> bool:
    """Return whether an operation changes its first argument in place."""
    name = call.op.split(".")[1] if call.op.startswith("aten.") else ""
    return name.endswith("_") and not name.endswith("__") and call.op not in IDENTITIES


def _sees(node: Node | None, viewed: Node) -> bool:
    """Return whether a node is another one or a view of it."""
    while node is not None and node is not viewed:
        node = node.inputs[0] if node.kind == "view" else None
    return node is viewed


def _mentions(value: Any, wanted: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return value == wanted or any(_mentions(part, wanted) for part in parts)


def _collect(value: Any, into: list[Node]) -> None:
    if isinstance(value, Node):
        into.append(value)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, into)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, into)
