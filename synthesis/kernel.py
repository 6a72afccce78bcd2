"""One fused kernel: its loops, loads and stores. Both languages are written from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from synthesis.errors import Unsupported
from synthesis.expr import INNER, Expr, Table
from synthesis.graph.nodes import Formula, Node
from synthesis.graph.sizes import Affine, Size

SHORT_ROW = 64  # elements: 128 bytes of 16-bit values


@dataclass(slots=True)
class Store:
    """One output of a kernel. A row-level value is stored once per row."""

    node: Node
    value: Expr
    offset: Affine

    @property
    def full(self) -> bool:
        return self.offset.coefficient(INNER) is not None


@dataclass(slots=True)
class Kernel:
    """`outer` loops (variable, extent) around a row of `length` elements with variable `j`.

    With `segments` a row is so many runs of `length` elements, and variable `s` is the run. With `runs`, loops like
    `outer`, each step of them is such a run, and what differs between runs may be no multiple of the place in the row.
    """

    name: str
    outer: tuple[tuple[str, Size], ...]
    length: Size
    stores: list[Store]
    one: Size
    segments: Size | None = None
    runs: tuple[tuple[str, Size], ...] = ()

    def exprs(self) -> list[Expr]:
        """Return every needed expression, arguments before users."""
        found: dict[int, Expr] = {}

        def visit(expr: Expr) -> None:
            if expr.number not in found:
                for arg in expr.args:
                    visit(arg)
                found[expr.number] = expr

        for store in self.stores:
            visit(store.value)
        return list(found.values())

    def loads(self) -> list[Node]:
        """Return the tensors that are read, each once."""
        nodes = {id(e.data[0]): e.data[0] for e in self.exprs() if e.op in ("load", "padded")}
        return list(nodes.values())

    def symbols(self) -> list[str]:
        """Return the sizes that the kernel takes as arguments, in a stable order."""
        used: set[str] = set(self.length.symbols() | (self.segments.symbols() if self.segments else set()))
        for _, extent in (*self.outer, *self.runs):
            used |= extent.symbols()
        for size in sizes_of([s.offset for s in self.stores] + [e.data for e in self.exprs()]):
            used |= size.symbols()
        return sorted(used)

    @property
    def in_order(self) -> bool:
        """Return whether rows are gone over as a whole, for numbers of a row or for scans."""
        return any(e.op in ("reduce", "scan") for e in self.exprs())

    @property
    def passes(self) -> int:
        """The number of passes over a row: one more than the deepest chain of reductions that full stores depend on."""
        phases = [e.phase for e in self.exprs() if e.op == "reduce"]
        return max(max(phases, default=0), max((s.value.phase for s in self.stores if s.full), default=0) + 1)


def sizes_of(values: Sequence[Any]) -> Iterator[Size]:
    """Yield the sizes inside positions, formulas and tuples of them."""
    for value in values:
        if isinstance(value, Size):
            yield value
        elif isinstance(value, Formula):
            yield value.size
        elif isinstance(value, Affine):
            yield value.const
            yield from (c for _, c in value.terms)
        elif isinstance(value, tuple):
            yield from sizes_of(value)


def rebuild(
    value: Expr, table: Table, change: Callable[[Affine], Affine], memo: dict[int, Expr], part: int | None = None
) -> Expr:
    """Return the same expression over other loop variables; with `part`, of that part of each `cat`."""
    if value.number in memo:
        return memo[value.number]
    if value.op == "cat" and part is not None:
        memo[value.number] = rebuild(value.args[part], table, change, memo, part)
        return memo[value.number]
    args = tuple(rebuild(a, table, change, memo, part) for a in value.args)
    if value.op == "load":
        result = table.load(value.data[0], change(value.data[1]), value.data[2], args)
    elif value.op == "padded":
        node, offset, inside, filling = value.data
        result = table.padded(node, change(offset), tuple((change(p), extent) for p, extent in inside), filling)
    elif value.op == "const":
        result = table.const(value.data, value.type)
    elif value.op == "iota":
        result = table.iota(change(value.data))
    elif value.op == "cat":
        result = table.cat(change(value.data[0]), value.data[1], args)
    elif value.op == "segment":
        result = table.segment(value.data, args[0], value.hint)
    elif value.op == "scan":
        result = table.scan(value.data, args[0], value.hint)
    elif value.op == "reduce":
        result = table.reduce(value.data, args[0], value.hint)
    else:
        result = table.pointwise(value.op, args, value.type, value.hint)
    memo[value.number] = result
    return result


def unjoin(kernel: Kernel) -> Kernel:
    """Return the kernel with rows as short as the equal parts of its `cat`, each program computing all of them.

    What two parts read is then loaded once, and without conditions. The same kernel where rows are not joined so.
    """
    cats = [e for e in kernel.exprs() if e.op == "cat"]
    row = Affine.of(kernel.one - 1, {INNER: kernel.one})
    if not cats or any(e.op == "reduce" for e in kernel.exprs()) or not all(s.full for s in kernel.stores):
        return kernel
    bounds = cats[0].data[1]
    part, count = bounds[1], len(bounds) - 1
    equal = all(b == part * number for number, b in enumerate(bounds))
    if not equal or part * count != kernel.length or any(c.data != (row, bounds) for c in cats):
        return kernel
    table, stores = Table(), []
    for number in range(count):

        def change(affine: Affine, start: Size = part * number) -> Affine:
            step = affine.coefficient(INNER)
            return affine if step is None else affine.shifted(step * start)

        memo: dict[int, Expr] = {}
        for store in kernel.stores:
            stores.append(Store(store.node, rebuild(store.value, table, change, memo, number), change(store.offset)))
    return Kernel(kernel.name, kernel.outer, part, stores, kernel.one)


def share_loads(kernel: Kernel) -> Kernel:
    """Return the kernel with its loops in an order that lets neighbouring rows read the same elements.

    A loop that most accesses do not depend on goes inside the others: its rows share what they load. Rows that are too
    short to fill a line of the cache keep their order.
    """
    loads = [e.data[1] for e in kernel.exprs() if e.op == "load" and e.full]
    if min(kernel.length.values) < SHORT_ROW or any(e.op == "reduce" for e in kernel.exprs()):
        return kernel

    def shared(loop: tuple[str, Size]) -> bool:
        apart = sum(offset.coefficient(loop[0]) is not None for offset in loads) + len(kernel.stores)
        return 2 * apart <= len(loads) + len(kernel.stores)

    return Kernel(kernel.name, tuple(sorted(kernel.outer, key=shared)), kernel.length, kernel.stores, kernel.one)


def _affines(stores: Sequence[Store], exprs: Sequence[Expr]) -> list[Affine]:
    found = [s.offset for s in stores]
    for expr in exprs:
        data = expr.data if isinstance(expr.data, tuple) else (expr.data,)
        found += [d for d in data if isinstance(d, Affine)]
        found += [position for position, _ in data[2]] if expr.op == "padded" else []
    return found


def collapse(
    name: str,
    outer: list[tuple[str, Size]],
    inner: list[tuple[str, Size]],
    stores: list[Store],
    one: Size,
    *,
    runs: bool = False,
) -> Kernel:
    """Merge neighbouring loops that every access walks as one; without `inner`, the last loop becomes the row.

    Raise Unsupported where the row would still have more than one variable (unless it may have `runs`), or would be
    another than that of a reduction.
    """
    draft = Kernel(name, tuple(outer), one, stores, one)
    affines = _affines(stores, draft.exprs())
    if not inner and outer:
        if any(e.op in ("reduce", "segment", "scan") for e in draft.exprs()):
            raise Unsupported("a reduction or scan of one element")
        merged = _merge(outer, affines, one)
        outer_groups, inner_groups = merged[:-1], merged[-1:]
    else:
        outer_groups, inner_groups = _merge(outer, affines, one), _merge(inner, affines, one)
    if len(inner_groups) > 1 and not runs:
        raise Unsupported("a row that is not one run of elements")
    names = {group[-1][0]: f"o{i}" for i, group in enumerate(outer_groups)}
    names |= {group[-1][0]: f"k{i}" for i, group in enumerate(inner_groups[:-1])}
    names |= {group[-1][0]: INNER for group in inner_groups[-1:]}
    merged_away = {v for v, _ in [*outer, *inner]}

    def change(affine: Affine) -> Affine:
        return Affine.of(
            affine.const, {names.get(v, v): c for v, c in affine.terms if v in names or v not in merged_away}
        )

    table, memo = Table(), dict[int, Expr]()
    changed = [Store(s.node, rebuild(s.value, table, change, memo), change(s.offset)) for s in stores]
    loops, parts = (
        tuple((names[g[-1][0]], _extent(g, one)) for g in groups) for groups in (outer_groups, inner_groups[:-1])
    )
    length = _extent(inner_groups[-1], one) if inner_groups else one
    return Kernel(name, loops, length, changed, one, runs=parts)


def is_one_run(kernel: Kernel, stores: Sequence[Store], values: Sequence[Expr]) -> bool:
    """Return whether these stores, and what these values need but numbers of rows, walk all runs of a row as one."""
    seen: dict[int, Expr] = {}
    waiting = list(values)
    while waiting:
        expr = waiting.pop()
        if expr.op != "reduce" and expr.number not in seen:
            seen[expr.number] = expr
            waiting += expr.args
    return len(_merge([*kernel.runs, (INNER, kernel.length)], _affines(stores, list(seen.values())), kernel.one)) == 1


def _extent(group: list[tuple[str, Size]], one: Size) -> Size:
    total = one
    for _, size in group:
        total = total * size
    return total


def _merge(loops: list[tuple[str, Size]], affines: list[Affine], one: Size) -> list[list[tuple[str, Size]]]:
    """Group neighbours that collapse into one loop. Its variable is the last of the group."""
    zero = one - 1
    groups: list[list[tuple[str, Size]]] = []
    for variable, extent in reversed(loops):
        if groups:
            inner_variable = groups[0][-1][0]
            span = _extent(groups[0], one)
            if all(
                (a.coefficient(variable) or zero) == (a.coefficient(inner_variable) or zero) * span for a in affines
            ):
                groups[0].insert(0, (variable, extent))
                continue
        groups.insert(0, [(variable, extent)])
    return groups
