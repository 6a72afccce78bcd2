"""Write the Python half of a Candidate: sizes, views, allocations, library calls and the returned structure."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.nodes import HEADS, VARYING, Formula, Node, Program
from synthesis.graph.sizes import Size
from synthesis.plan import Planner

READABLE_NAMES = {
    "aten.linear.default": "F.linear",
    "aten.mm.default": "torch.mm",
    "aten.bmm.default": "torch.bmm",
    "aten.matmul.default": "torch.matmul",
    "aten.addmm.default": "torch.addmm",
    "tensor": "torch.tensor",
    "aten.scaled_dot_product_attention.default": "F.scaled_dot_product_attention",
}
BLOCK = "block"  # a library node that a building block of ours computes
DENSE = frozenset(f"aten.{name}.default" for name in ("linear", "mm", "bmm", "addmm", "matmul")) | {
    BLOCK
}  # fresh, dense


@dataclass(slots=True)
class Host:
    """Writes forward's lines. `names` maps nodes in memory to Python expressions."""

    program: Program
    planner: Planner
    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    dense: set[int] = field(default_factory=set)
    used_symbols: set[str] = field(default_factory=set)
    kernels: dict[tuple[str, ...], str] = field(default_factory=dict)  # name of those with texts that are alike
    counters: list[tuple[Node, int]] = field(init=False)  # those that no kernel counts

    def __post_init__(self) -> None:
        self.counters = list(self.program.counters)
        for head in self.program.heads:
            self.names[id(head)] = head.fn if head.kind == "input" else _attribute(head.fn)

    # ---- text

    def size(self, size: Size) -> str:
        self.used_symbols |= size.symbols()
        return size.text()

    def shape(self, shape: tuple[Size, ...]) -> str:
        texts = [self.size(s) for s in shape]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def dtype(self, dtype: str) -> str:
        if dtype not in VARYING:
            return f"torch.{dtype}"
        head = next((h for h in self.program.heads if h.dtype in VARYING), None)
        if head is None:
            raise Unsupported("a dtype that differs between workloads")
        return f"{self.names[id(head)]}.dtype"

    def device(self) -> str:
        heads = sorted(self.program.heads, key=lambda h: h.kind != "input")
        if not heads:
            raise Unsupported("a reference without inputs")
        return f"{self.names[id(heads[0])]}.device"

    def tensor(self, node: Node) -> str:
        """Return a Python expression for a node: its name, or a view of another node."""
        if id(node) in self.names:
            return self.names[id(node)]
        if node.kind == "constant":
            return self.argument(node.data)
        if node.kind != "view":
            raise Unsupported(f"{node.name} is not in memory")
        source = self.tensor(node.inputs[0])
        if node.fn == "reshape":
            return f"{source}.reshape{self.shape(node.shape)}" if node.shape else f"{source}.reshape(())"
        if node.fn == "permute":
            order = list(node.data)
            moved = [d for d in range(len(order)) if order[d] != d]
            return (
                f"{source}.transpose({moved[0]}, {moved[1]})"
                if len(moved) == 2
                else f"{source}.permute({', '.join(map(str, order))})"
            )
        if node.fn == "expand":
            if node.inputs[0].kind == "constant":
                kind, place = self.dtype(node.dtype), self.device()
                return f"torch.full({self.shape(node.shape)}, {source}, dtype={kind}, device={place})"
            return f"{source}.expand{self.shape(node.shape)}"
        dimension, start, step = node.data
        length = node.shape[dimension]
        if step == -1:
            return f"{source}.flip({dimension})"
        if step == 1:
            return f"{source}.narrow({dimension}, {self.size(start)}, {self.size(length)})"
        return f"{source}[{':, ' * dimension}{self.size(start)}::{step}]"

    def argument(self, value: Any) -> str:
        """Return an argument of a library call."""
        if isinstance(value, Node):
            return self.tensor(value)
        if isinstance(value, Size):
            return self.size(value)
        if isinstance(value, Formula):
            size = self.size(value.size)
            text = {
                "value": f"({size})",
                "reciprocal": f"1 / ({size})",
                "sqrt": f"({size}) ** 0.5",
                "rsqrt": f"({size}) ** -0.5",
            }[value.fn]
            return f"-({text})" if value.sign < 0 else text
        if isinstance(value, Mapping):
            return (
                self.dtype("mixed" if value.get("dtype") == "varies" else value["dtype"])
                if "dtype" in value
                else self.device()
            )
        if isinstance(value, list | tuple):
            return f"[{', '.join(self.argument(v) for v in value)}]"
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        return repr(value)

    # ---- steps

    def once(self, name: str, kernels: list[str]) -> tuple[str, list[str]]:
        """Return the name of kernels, and those that are to be written: none where the same are there already."""
        alike = tuple(with_plain_names(text) for text in kernels)
        if alike in self.kernels:
            return self.kernels[alike], []
        self.kernels[alike] = name
        return name, kernels

    def call(self, node: Node) -> None:
        """Write a library call, or the selection of one of its results."""
        if node.kind == "item":
            number = self.size(node.data) if isinstance(node.data, Size) else node.data
            self.lines.append(f"{node.name} = {self.tensor(node.inputs[0])}[{number}]")
        else:
            args, kwargs = node.data
            texts = [self.argument(a) for a in args]
            kept = {k: v for k, v in kwargs.items() if k not in ("layout", "pin_memory", "memory_format")}
            texts += [f"{k}={self.argument(v)}" for k, v in kept.items()]
            self.lines.append(
                f"{node.name} = {READABLE_NAMES.get(node.fn, f'torch.ops.{node.fn}')}({', '.join(texts)})"
            )
        self.names[id(node)] = node.name

    def contiguous(self, node: Node) -> str:
        """Return the name of a dense tensor in memory, made dense first where it may not be."""
        name = self.tensor(node)
        if node.kind in ("input", "library", "item") and node.fn not in DENSE and id(node) not in self.dense:
            self.dense.add(id(node))
            if node.kind == "input" or node.name == name:
                self.lines.append(f"{name} = {name}.contiguous()")
        return name

    def take_counter(self) -> str | None:
        """Return the name of a counter that a kernel is to add one to, None where there is none left."""
        own = next((entry for entry in self.counters if entry[1] == 1), None)
        if own is None:
            return None
        self.counters.remove(own)
        return self.tensor(own[0])

    def allocate(self, node: Node, device: str | None) -> str:
        arguments = [self.shape(node.shape)]
        if node.dtype != "float32" or device is not None:
            arguments.append(f"dtype={self.dtype(node.dtype)}")
        if device is not None:
            arguments.append(f"device={device}")
        self.lines.append(f"{node.name} = torch.empty({', '.join(arguments)})")
        self.names[id(node)] = node.name
        return node.name

    def results(self) -> None:
        """Write what is still to be counted, and the return statement; outputs are fresh tensors, each with memory of
        its own."""
        self.lines += [f"{self.tensor(counter)}.add_({number})" for counter, number in self.counters]
        seen: set[int] = set()
        texts = []
        for output in self.program.outputs:
            base = self.planner.base(output)
            text = self.tensor(output)
            reused = base.kind in HEADS or id(base) in seen
            shared = output.kind == "view" and output.fn in ("expand", "slice")
            texts.append(f"{text}.clone()" if reused else f"{text}.contiguous()" if shared else text)
            seen.add(id(base))
        kind = self.program.structure
        if kind == "tensor":
            self.lines.append(f"return {texts[0]}")
        elif kind == "dict":
            pairs = ", ".join(f"{key!r}: {text}" for key, text in zip(self.program.keys, texts, strict=True))
            self.lines.append(f"return {{{pairs}}}")
        elif kind == "list":
            self.lines.append(f"return [{', '.join(texts)}]")
        else:
            self.lines.append(f"return {', '.join(texts)}" + ("," if len(texts) == 1 else ""))

    def size_lines(self, symbols: set[str]) -> list[str]:
        """Return the lines that read sizes off inputs and parameters at every call."""
        lines = []
        by_head: dict[int, list[tuple[int, str]]] = {}
        for symbol in sorted(symbols):
            head, dimension = self.program.symbols[symbol]
            by_head.setdefault(id(head), []).append((dimension, symbol))
        for head in self.program.heads:
            wanted = dict(by_head.get(id(head), []))
            name = self.names[id(head)]
            if len(wanted) == head.rank and head.rank > 1:
                lines.append(f"{', '.join(wanted[d] for d in range(head.rank))} = {name}.shape")
            else:
                lines += [f"{wanted[d]} = {name}.shape[{d}]" for d in sorted(wanted)]
        return lines


def with_plain_names(kernel: str) -> str:
    """Return a kernel's text with the names that are its own numbered, so that two that compute alike are equal."""
    nodes = list(ast.walk(ast.parse(kernel)))
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    numbers: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        name = found.group()
        return numbers.setdefault(name, f"name_{len(numbers)}") if name in own else name

    return re.sub(r"(?<![.\w])[A-Za-z_]\w*", plain, kernel)


def _attribute(path: str) -> str:
    """Return `layers.0.weight` as a Python expression, `self.layers[0].weight`."""
    return "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))
