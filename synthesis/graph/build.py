"""Make primitive nodes: broadcasting, reductions over trailing dimensions, views. No aten here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set

from synthesis.errors import Unsupported
from synthesis.graph.integers import Ranges
from synthesis.graph.nodes import FLOATS, PLACES, Formula, Node
from synthesis.graph.sizes import Size, product

Operand = Node | float | int | bool | Size | Formula
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "not", "and", "or", "xor")


class Builder:
    """Makes nodes with unique names. `origin` (the aten operation at hand) is noted on each.

    With `across` or `columns`, reductions may be over any dimensions, else over the last ones; with `across`, rows may
    be scanned, too. Raises Unsupported for integers that kernels would get wrong.
    """

    def __init__(self, one: Size, *, wide: bool = False, across: bool = False, columns: bool = False) -> None:
        self.one = one
        self.across, self.columns = across, columns
        self.origin = ""
        self.ranges = Ranges(wide=wide)
        self._used: dict[str, int] = {}

    def name(self, hint: str) -> str:
        count = self._used.get(hint, 0)
        self._used[hint] = count + 1
        return hint if count == 0 else self.name(f"{hint}_{count}")

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names that nodes must not have."""
        for name in names:
            self._used.setdefault(name, 1)

    def constant(self, value: float | int | bool | Size | Formula) -> Node:
        dtype = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int | Size) else "float32"
        return Node(self.name("c"), "constant", "", (), (), dtype, value)

    def operand(self, value: Operand) -> Node:
        return value if isinstance(value, Node) else self.constant(value)

    def pointwise(self, fn: str, *operands: Operand, dtype: str | None = None) -> Node:
        inputs = tuple(self.operand(o) for o in operands)
        shape = self.broadcast([i.shape for i in inputs])
        if dtype is None:
            dtype = "bool" if fn in COMPARISONS else self.promoted(inputs)
        made = Node(self.name(fn), "pointwise", fn, inputs, shape, dtype, origin=self.origin)
        self.ranges.check(made)
        return made

    def promoted(self, inputs: Sequence[Node]) -> str:
        """Return the dtype of a result: the first floating one, else the first that is no bool."""
        floats = [i.dtype for i in inputs if i.dtype in FLOATS and i.kind != "constant"]
        rest = [i.dtype for i in inputs if i.dtype != "bool"]
        if floats:
            return floats[0] if len(set(floats)) == 1 else "float32"
        return "float32" if "float32" in rest else (rest or ["bool"])[0]

    def broadcast(self, shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
        rank = max((len(s) for s in shapes), default=0)
        result = [self.one] * rank
        for shape in shapes:
            for offset, size in enumerate(shape, rank - len(shape)):
                if result[offset].equals(1):
                    result[offset] = size
                elif not size.equals(1) and size != result[offset]:
                    raise Unsupported(f"cannot broadcast {size.text()} with {result[offset].text()}")
        return tuple(result)

    def reduce(self, fn: str, x: Node, dims: Sequence[int], *, keep: bool) -> Node:
        """Reduce over `dims`. Others than the last are moved there, one run of neighbours after the other.

        Raise Unsupported. Dimensions of size 1 are no obstacle.
        """
        wanted = {d % x.rank for d in dims} if x.rank else set()
        kept = fn in ("max", "min", "peak") or (x.dtype in FLOATS and fn not in PLACES)
        dtype = x.dtype if kept else "int64"
        shape = tuple(s for d, s in enumerate(x.shape) if d not in wanted)
        if keep:
            shape = tuple(self.one if d in wanted else s for d, s in enumerate(x.shape))
        if all(x.shape[d].equals(1) for d in wanted):  # one element each: there is no row to go over
            if fn in PLACES:
                return self.expand(self.constant(0), shape)
            same = dtype == x.dtype and shape != x.shape  # else a tensor of its own, which may be changed in place
            return self.reshape(x if same else self.pointwise("cast", x, dtype=dtype), shape)
        self.ranges.check_reduction(fn, x, self.count(x, sorted(wanted)))
        run = self._last_run(x, wanted)
        apart = sorted(wanted - set(run))
        if not (self.across or self.columns) and (apart or run[-1] < x.rank - 1):
            raise Unsupported("a reduction that is not over the last dimensions")
        if apart:
            inner = self.reduce(fn, x if fn != "sum" else self._wide(x), run, keep=True)
            whole = self.reshape(self.reduce(fn, inner, apart, keep=True), shape)
            return whole if whole.dtype == dtype else self.pointwise("cast", whole, dtype=dtype)
        moved = self.permute(x, [d for d in range(x.rank) if d not in run] + run)
        rows = moved.shape[: x.rank - len(run)]
        reduced = Node(self.name(fn), "reduce", fn, (moved,), rows, dtype, len(run), origin=self.origin)
        return self.reshape(reduced, shape)

    def scan(self, fn: str, x: Node, dimension: int) -> Node:
        """Return what `fn` makes of all elements up to each one, along a dimension. Raise Unsupported."""
        if not self.across or x.dtype != "float32":
            raise Unsupported("a scan")
        dimension %= x.rank
        if x.shape[dimension].equals(1):
            return self.pointwise("cast", x, dtype=x.dtype)
        last = [d for d in range(x.rank) if d != dimension] + [dimension]
        moved = self.permute(x, last)
        scanned = Node(self.name("scan"), "scan", fn, (moved,), moved.shape, x.dtype, 1, origin=self.origin)
        if moved is x:
            return scanned
        back = self.permute(scanned, sorted(range(x.rank), key=lambda d: last[d]))
        return self.pointwise("cast", back, dtype=x.dtype)  # in memory as torch has it

    def _last_run(self, x: Node, wanted: Set[int]) -> list[int]:
        """Return the last neighbours among the wanted dimensions, with those of size 1 between and behind them."""
        run: list[int] = []
        for d in range(x.rank - 1, -1, -1):
            if d in wanted or x.shape[d].equals(1):
                run.insert(0, d)
            elif any(r in wanted and not x.shape[r].equals(1) for r in run):
                break
            else:
                run = []
        while run[0] not in wanted:
            del run[0]
        return run

    def _wide(self, x: Node) -> Node:
        """Return a tensor with partial sums that are not rounded to 16 bits on their way."""
        narrow = x.dtype in FLOATS and x.dtype != "float32"
        return self.pointwise("cast", x, dtype="float32") if narrow else x

    def count(self, x: Node, dims: Sequence[int]) -> Size:
        return product((x.shape[d % x.rank] for d in dims), self.one)

    def mean(self, x: Node, dims: Sequence[int], *, keep: bool) -> Node:
        total = self.reduce("sum", x, dims, keep=keep)
        return self.pointwise("mul", total, Formula("reciprocal", self.count(x, dims)), dtype=x.dtype)

    def variance(self, x: Node, dims: Sequence[int], correction: float, *, keep: bool) -> Node:
        source = self._wide(x) if self.columns else x  # the mean may be stored between two kernels
        centred = self.pointwise("sub", x, self.mean(source, dims, keep=True))
        total = self.reduce("sum", self.pointwise("mul", centred, centred), dims, keep=keep)
        count: Operand = self.count(x, dims)
        if correction:
            count = self.pointwise("maximum", self.pointwise("sub", count, float(correction)), 0.0)
            return self.pointwise("div", total, count, dtype=x.dtype)
        return self.pointwise("mul", total, Formula("reciprocal", self.count(x, dims)), dtype=x.dtype)

    def reshape(self, x: Node, shape: Sequence[Size]) -> Node:
        shape = tuple(shape)
        return x if shape == x.shape else self._view("reshape", x, shape, None)

    def permute(self, x: Node, order: Sequence[int]) -> Node:
        order = tuple(d % x.rank for d in order)
        if order == tuple(range(x.rank)):
            return x
        return self._view("permute", x, tuple(x.shape[d] for d in order), order)

    def expand(self, x: Node, shape: Sequence[Size]) -> Node:
        shape = tuple(shape)
        return x if shape == x.shape else self._view("expand", x, shape, None)

    def slice(self, x: Node, dimension: int, start: Size, length: Size, step: int = 1) -> Node:
        dimension %= x.rank
        shape = (*x.shape[:dimension], length, *x.shape[dimension + 1 :])
        if shape == x.shape and start.equals(0) and step == 1:
            return x
        return self._view("slice", x, shape, (dimension, start, step))

    def cat(self, parts: Sequence[Node], dimension: int) -> Node:
        dimension %= parts[0].rank
        for part in parts:
            self.ranges.demand(part)
        total = parts[0].shape[dimension]
        for part in parts[1:]:
            total = total + part.shape[dimension]
        shape = (*parts[0].shape[:dimension], total, *parts[0].shape[dimension + 1 :])
        return Node(self.name("cat"), "cat", "", tuple(parts), shape, parts[0].dtype, dimension, origin="cat")

    def pad(self, x: Node, before: Sequence[int], after: Sequence[int], value: float) -> Node:
        """Return `x` with so many elements of a value around it. Raise Unsupported."""
        if not self.across or x.dtype != "float32" or min(*before, *after) < 0:
            raise Unsupported("a frame around a tensor")
        if not any(before) and not any(after):
            return x
        shape = tuple(s + (a + b) for s, a, b in zip(x.shape, before, after, strict=True))
        return Node(self.name("pad"), "pad", "", (x,), shape, x.dtype, (tuple(before), value), origin=self.origin)

    def iota(self, shape: Sequence[Size], dimension: int) -> Node:
        return Node(self.name("iota"), "iota", "", (), tuple(shape), "int64", dimension)

    def _view(self, fn: str, x: Node, shape: tuple[Size, ...], data: object) -> Node:
        return Node(self.name(fn), "view", fn, (x,), shape, x.dtype, data)

    def softmax(self, x: Node, dimension: int, *, log: bool, dtype: str) -> Node:
        peak = self.reduce("peak", x, [dimension], keep=True)
        centred = self.pointwise("sub", x, peak)
        powers = self.pointwise("exp", centred)
        total = self.reduce("sum", powers, [dimension], keep=True)
        if log:
            return self.pointwise("sub", centred, self.pointwise("log", total), dtype=dtype)
        return self.pointwise("mul", powers, self.pointwise("reciprocal", total), dtype=dtype)

    def logsumexp(self, x: Node, dims: Sequence[int], *, keep: bool) -> Node:
        peak = self.reduce("max", x, dims, keep=True)
        total = self.reduce("sum", self.pointwise("exp", self.pointwise("sub", x, peak)), dims, keep=keep)
        peak = self.reshape(peak, total.shape)
        infinite = self.pointwise("eq", self.pointwise("abs", peak), math.inf)
        usual = self.pointwise("add", self.pointwise("log", total), peak)
        return self.pointwise("where", infinite, peak, usual, dtype=x.dtype)

    def norm_layer(
        self, x: Node, rank: int, weight: Node | None, bias: Node | None, eps: float, *, centre: bool, dtype: str
    ) -> tuple[Node, Node, Node]:
        """Build LayerNorm (`centre`) or RMSNorm over the last `rank` dimensions: (result, mean, reciprocal
        deviation)."""
        dims = list(range(x.rank - rank, x.rank))
        mean = self.mean(x, dims, keep=True)
        body = self.pointwise("sub", x, mean) if centre else x
        square = self.mean(self.pointwise("mul", body, body), dims, keep=True)
        scale = self.pointwise("rsqrt", self.pointwise("add", square, eps))
        result = self.pointwise("mul", body, scale)
        if weight is not None:
            result = self.pointwise("mul", result, weight)
        if bias is not None:
            result = self.pointwise("add", result, bias)
        result.dtype = dtype
        return result, mean, scale
