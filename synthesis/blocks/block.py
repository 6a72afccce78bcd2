"""A block in a Program: the node that it computes, what it needs in memory, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from synthesis.graph.nodes import Node
from synthesis.host import BLOCK, Host

MATMULS = frozenset(["aten.matmul.default", "aten.mm.default", "aten.bmm.default", "aten.linear.default"])


@dataclass(slots=True)
class Code:
    """The text of a block: kernels, the functions that launch them by name, and Tunables with first values first."""

    kernels: list[str]
    launches: dict[str, str]
    tunables: dict[str, list[Any]]
    pieces: set[str] = field(default_factory=set)


class Block(Protocol):
    """Parts that a block gives to the module's writer."""

    title: str

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and into `host` the launch that computes `node`. Raise Unsupported."""
        ...


def compute(node: Node, block: Block, inputs: Iterable[Node]) -> None:
    """Let a block compute a node from `inputs`. The node stays the same object, so its users need not change."""
    node.kind, node.fn, node.data, node.origin = "library", BLOCK, block, block.title
    node.inputs = tuple({id(i): i for i in inputs}.values())


def tuple_of(texts: Iterable[str]) -> str:
    """Return a tuple of expressions, whatever their number."""
    return f"({''.join(f'{text}, ' for text in texts).rstrip()})"


def strip(node: Node) -> Node:
    """Return the node below casts."""
    while node.kind == "pointwise" and node.fn == "cast":
        node = node.inputs[0]
    return node


def base(node: Node) -> Node:
    """Return the node below views."""
    while node.kind == "view":
        node = node.inputs[0]
    return node
