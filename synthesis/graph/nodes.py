"""Primitive nodes that composite aten operations are decomposed into, with sizes that hold for every workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from synthesis.graph.sizes import Size

Kind = Literal[
    "input",
    "parameter",
    "buffer",
    "constant",
    "pointwise",
    "reduce",
    "scan",
    "view",
    "cat",
    "gather",
    "pad",
    "iota",
    "library",
    "item",
]
HEADS = ("input", "parameter", "buffer")
OF_ROWS = ("reduce", "scan")  # they go over the rows of a kernel
BACK = "back "  # in front of the function of a scan from the end
PLACES = ("argmax", "argmin")  # reductions to the first place of an extremum
FLOATS = ("float32", "float16", "bfloat16", "halves", "mixed")
VARYING = ("halves", "mixed")  # differs between workloads; halves: but always has 16 bits
QUANTISED = ("float8_e4m3fn",)  # numbers that a kernel rounds to and stores
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


@dataclass(eq=False, slots=True)
class Node:
    """One tensor of the program.

    - input, parameter, buffer: `fn` is its name or path.
    - constant: `data` is a number, or a Formula over sizes; shape ().
    - pointwise: `fn` of `inputs`, broadcast.
    - reduce: `fn` ("sum", "max", "min", "peak", "argmax", "argmin") over the last `data` dimensions of its input, which
      it drops. ("peak" is a maximum that may ignore NaN: for where NaN spreads on another way.)
    - scan: `fn` ("sum", "prod", "max", "min") of all elements up to each one, over the last `data` dimensions of its
      input; from the end where "back" is in front ("back sum").
    - view: `fn` "permute" (data: order), "expand", "slice" (data: dimension, start, step, which may be -1), "reshape".
    - cat: along dimension `data`.
    - gather: `inputs[0]` at index `inputs[1]` along dimension `data`.
    - pad: `inputs[0]` inside a frame; `data` = (how many elements are before it in each dimension, value of the frame).
    - iota: the index along dimension `data` of its own shape.
    - library: aten overload `fn` with `data` = (args, kwargs) holding Nodes, Sizes and plain values.
    - item: number `data` of the list that `inputs[0]`, a library node, returns; or number `data`, a Size, along the
      first dimension of a tensor.
    """

    name: str
    kind: Kind
    fn: str
    inputs: tuple[Node, ...]
    shape: tuple[Size, ...]
    dtype: str
    data: Any = None
    origin: str = field(default="")

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class Formula:
    """A number that depends on a size: `fn` is "value", "reciprocal", "sqrt" or "rsqrt"; `sign` is 1 or -1."""

    fn: str
    size: Size
    sign: int = 1


@dataclass(slots=True)
class Program:
    """A reference for all its workloads: primitive nodes, sizes, and how forward is called.

    `symbols` maps a size's name to (head node, dimension), where it can be read at run time. `counters` are buffers
    that every call adds a number to, and that nothing reads.
    """

    heads: list[Node]
    outputs: list[Node]
    structure: str
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    symbols: dict[str, tuple[Node, int]]
    one: Size
    source: str
    fused: list[str] = field(default_factory=list)
    counters: list[tuple[Node, int]] = field(default_factory=list)

    def inputs_first(self) -> Iterator[Node]:
        """Yield every node once, after its inputs. A node may be changed when it is yielded."""
        seen: set[int] = set()

        def visit(node: Node) -> Iterator[Node]:
            if id(node) in seen:
                return
            seen.add(id(node))
            for child in node.inputs:
                yield from visit(child)
            yield node

        for output in self.outputs:
            yield from visit(output)


def is_in_memory(node: Node, *, reshaped: bool = False) -> bool:
    """Return true if a node's elements lie in memory as its shape says, or with `reshaped` as another shape's."""
    while reshaped and node.kind == "view" and node.fn == "reshape":
        node = node.inputs[0]
    return node.kind in (*HEADS, "library", "item", "pointwise", "reduce")
