"""Tiles: two-dimensional pieces of a value, as the slots of a block see them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synthesis.errors import Unsupported
from synthesis.expr import INNER, Expr, Table
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Affine, Size
from synthesis.index import Cut, Evaluator, Index, Space
from synthesis.kernel import sizes_of
from synthesis.triton.writer import IDENTITY, Writer, place_of

HALVES = frozenset(["bfloat16", "float16", "halves"])
_COLUMN = re.compile(rf"\b{INNER}\b")


class Tile(Space):
    """Named variables of the rows and of the program, and `j` along the columns."""

    def __init__(self, variables: Mapping[str, Size], columns: Size, one: Size) -> None:
        super().__init__((), (columns,), one)
        self.at = {name: self._variable(name, size) for name, size in variables.items()}
        self.column = self.inner_index[0]


class TileEvaluator(Evaluator):
    """Evaluates nodes on a tile, where a reduction over whole rows of the tile is a value of each row."""

    def _reduce(self, node: Node, index: Index) -> Expr:
        source = node.inputs[0]
        if node.data != 1 or source.shape[-1] != self.space.inner[0]:
            raise Cut(node)
        return self.table.reduce(node.fn, self.at(source, (*index, self.space.inner_index[0])), node.name)


def evaluate(tile: Tile, node: Node, index: Index, leaves: Iterable[Node] = (), table: Table | None = None) -> Expr:
    """Return a node's value on a tile. `leaves` are loaded, or given. Raise Unsupported."""
    known = {id(leaf) for leaf in leaves}
    return TileEvaluator(tile, table or Table(), lambda n: id(n) in known).at(node, index)


def walk(exprs: Iterable[Expr]) -> list[Expr]:
    """Return every part of some values, each once."""
    found: dict[int, Expr] = {}

    def visit(expr: Expr) -> None:
        if id(expr) not in found:
            found[id(expr)] = expr
            for arg in expr.args:
                visit(arg)

    for expr in exprs:
        visit(expr)
    return list(found.values())


def reads(exprs: Iterable[Expr], given: Iterable[Node] = ()) -> list[Node]:
    """Return the tensors that some values load, each once."""
    known = {id(n) for n in given}
    found = {id(e.data[0]): e.data[0] for e in walk(exprs) if e.op == "load" and id(e.data[0]) not in known}
    return list(found.values())


def symbols(exprs: Iterable[Expr], more: Sequence[Size | Affine]) -> list[str]:
    """Return the names of the sizes that some values and positions need."""
    used: set[str] = set()
    for size in sizes_of([*more, *(e.data for e in walk(exprs))]):
        used |= size.symbols()
    return sorted(used)


@dataclass(slots=True)
class TileWriter(Writer):
    """Writes the values of one tile. `given` names values that are there already; `masks` are those of an element, of
    a row and of a column ("" for none)."""

    given: dict[int, str] = field(default_factory=dict)
    row_variables: frozenset[str] = frozenset()
    masks: tuple[str, str, str] = ("inside", "row_inside", "column_inside")
    column: str = INNER  # what the variable along the columns is called here
    ready: dict[int, str] = field(default_factory=dict)  # loads before the loop, by number
    spread: str = ""  # added to the place of a vector that is loaded as a tile

    def emit(self, text: str) -> None:
        self.lines.append(self.indent + (text if self.column == INNER else _COLUMN.sub(self.column, text)))

    def load(self, expr: Expr, guard: str, other: str = "0") -> str:
        assert other == "0"
        node = expr.data[0]
        if id(node) in self.given:
            return self.given[id(node)]
        text = self.raw(expr, guard)
        if expr.type == "f":
            return f"{text}.to(tl.float32)"
        return (
            f"{text} != 0" if expr.type == "b" else f"{text}.to({'tl.int64' if node.dtype == 'int64' else 'tl.int32'})"
        )

    def text(self, expr: Expr, guard: str) -> str:
        source = expr.args[0] if expr.op == "cast" and expr.type == "f" else None
        if source is not None and source.op == "load" and source.type == "i" and id(source.data[0]) not in self.given:
            return f"{self.raw(source, guard)}.to(tl.float32)"
        return super(TileWriter, self).text(expr, guard)

    def raw(self, expr: Expr, guard: str = "") -> str:
        """Return the load of a value in the type of memory."""
        if expr.number in self.ready:
            return self.ready[expr.number]
        node, offset, chosen = expr.data
        for (variable, extent), index in zip(chosen, expr.args, strict=True):
            if variable not in self.used:
                self.used.add(variable)
                self.emit(f"{variable} = tl.minimum(tl.maximum({self.value(index)}, 0), {extent.text()} - 1)")
        names = {v for v, _ in offset.terms}
        by_row, by_column = bool(names & self.row_variables), expr.full
        mask = (
            self.masks[0] if by_row and by_column else self.masks[1] if by_row else self.masks[2] if by_column else ""
        )
        mask = " & ".join(part for part in (mask, guard) if part)
        options = f", mask={mask}, other=0" if mask else ""
        return f"tl.load({node.name}_ptr + {place_of(offset)}{self.spread}{options})"

    def before_loop(self, expr: Expr, rows: str) -> dict[int, str]:
        """Load the values that are the same for every row of a tile, and return the names by number.

        A vector along the columns is loaded as a whole tile of `rows`. Loaded as a vector it would have a thread for
        each column, and the compiler would hold the whole tile that way: reductions then shuffle every element.
        """
        found = {}
        for part in walk([expr]):
            if part.op == "load" and not part.args and id(part.data[0]) not in self.given:
                names = {v for v, _ in part.data[1].terms}
                if not names & self.row_variables:
                    self.spread = f" + tl.zeros([{rows}, 1], tl.int32)" if part.full else ""
                    found[part.number] = self.assign(part.hint, self.raw(part))
                    self.spread = ""
        return found

    def operand(self, expr: Expr, hint: str) -> str:
        """Return the name of a value as an operand of a product, in the product's TYPE.

        Factors that memory holds in one type of 16 bits are multiplied in it: rounded once all the same, and a
        conversion less that would move the operand through shared memory.
        """
        parts = [_below_casts(part) for part in _factors(expr)]
        kinds = {part.data[0].dtype if part.op == "load" else "" for part in parts}
        plain = all(part.op == "load" and id(part.data[0]) not in self.given for part in parts)
        if plain and (len(parts) == 1 or (len(parts) == 2 and len(kinds) == 1 and kinds <= HALVES)):
            text = " * ".join(self.raw(part) for part in parts)
            return self.assign(hint, f"({text}).to(TYPE)" if len(parts) > 1 else f"{text}.to(TYPE)")
        return self.assign(hint, f"{self.value(expr)}.to(TYPE)")

    def reduce(self, expr: Expr) -> str:
        return self.across(expr, f"tl.where({self.masks[0]}, {self.value(expr.args[0])}, {IDENTITY[expr.data]})")


def _factors(expr: Expr) -> list[Expr]:
    expr = _below_casts(expr)
    return [f for arg in expr.args for f in _factors(arg)] if expr.op == "mul" and expr.type == "f" else [expr]


def _below_casts(expr: Expr) -> Expr:
    while expr.op == "cast" and expr.args[0].type != "b":
        expr = expr.args[0]
    return expr


@dataclass(slots=True)
class Pen:
    """The lines of one kernel, which several writers of tiles add to."""

    exact: bool
    used: set[str]
    lines: list[str] = field(default_factory=list)
    pieces: set[str] = field(default_factory=set)

    def writer(self, rows: Iterable[str], indent: str, **more: Any) -> TileWriter:
        """Return a writer of tiles with these variables as rows."""
        return TileWriter(
            None, "held", self.exact, self.lines, self.pieces, {}, {}, self.used, indent,  # type: ignore[arg-type]
            row_variables=frozenset(rows), **more,
        )  # fmt: skip


def covers(expr: Expr, row_variables: frozenset[str]) -> bool:
    """Return whether a value differs by row and by column, as a product's operand must."""
    names = {v for e in walk([expr]) if e.op == "load" for v, _ in e.data[1].terms}
    return expr.full and bool(names & row_variables)


def attempt(function: Callable[[], Expr]) -> Expr | None:
    """Return a value, None where it has no place on its tile."""
    try:
        return function()
    except Unsupported:
        return None


def whole(size: Size) -> str:
    """Return a size as text for a kernel's body."""
    text = size.text()
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def dot(dtype: str, a: str, b: str, before: str = "") -> str:
    """Return the product of two tiles, added to what was before: in float32 as in `large`, outside the tensor core."""
    if dtype != "float32":
        return f'tl.dot({a}, {b}{", " * bool(before)}{before}, input_precision="ieee")'
    step = f'tl.dot({a}, {b}, input_precision="tf32x3")'
    return f"tl.fma({step}, 1.0, {before})" if before else step


__all__ = [
    "INNER",
    "Pen",
    "Tile",
    "TileWriter",
    "attempt",
    "covers",
    "dot",
    "evaluate",
    "reads",
    "symbols",
    "walk",
    "whole",
]
