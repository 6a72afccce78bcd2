"""The text of a product's kernels: few rows, a tile of columns for each program, steps along the whole depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from synthesis.blocks.block import Code, tuple_of
from synthesis.blocks.factors import renamed, sums_inside
from synthesis.blocks.launch import BESIDE, GROUPED, LAUNCH, TUNABLES, VECTOR_LAUNCH, VECTOR_TUNABLES
from synthesis.blocks.narrow import narrow
from synthesis.blocks.tile import Pen, Tile, covers, dot, symbols, walk, whole
from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Affine, Size
from synthesis.host import Host
from synthesis.index import linear

if TYPE_CHECKING:
    from synthesis.blocks.product import Product, Weight

NAMES = (
    "m n j c g g_next first u j_next r r_inside down_inside k start j_a a_column a_inside zero out low side scale"
    " row_inside column_inside inside c_inside k_inside side_inside next_column next_inside"
)


def write_product(block: Product, host: Host, node: Node) -> Code:
    """Write the kernels of a product, and its launch into `host`."""
    extents: list[Size | Affine] = [block.rows, block.columns, block.depth]
    extents += [block.low.rank] if block.low else []
    extents += [block.steps.group] if block.steps.group else []
    loads, sizes = block.loads(), symbols(block.exprs(), extents)
    name = f"product_{node.name}"
    small = {n.name: n.function() for w in block.weights for p in w.parts if (n := narrow(p)) is not None}
    single = block.single
    texts = [_Kernel(block, vector=v) for v in ((False, True) if single else (False,))]
    kernels = [k.write(f"{name}_of_one_row" if k.vector else name, loads, sizes) for k in texts]
    name, kernels = host.once(name, kernels)
    arguments = [host.contiguous(n) for n in loads]
    out = host.allocate(node, host.device())
    arguments += [host.allocate(n, host.device()) for n, _ in block.more]
    host.used_symbols |= set(sizes)
    rows, columns, depth = (host.size(s) for s in (block.rows, block.columns, block.depth))
    listed = f"{tuple_of(arguments)}, {tuple_of(sizes)}"
    kind, beside = f"_TYPES[{host.dtype(block.a.dtype)}]", ""
    if block.operand.scale is not None:
        beside = f', BESIDE=CONFIG["BESIDE"] and {kind} is not tl.float16'  # float16 overflows before it is scaled
    constants = beside
    if block.low is not None:
        constants += f", RANK={host.size(block.low.rank)}"
    step = f", group={host.size(block.steps.group)}" if block.steps.group is not None else ""
    step += f", parts={block.steps.parts}" if block.steps.parts > 1 else ""
    call = f"_product({name}, {out}, {rows}, {columns}, {depth}, {block.width}, {listed}, {kind}{step}{constants})"
    if single:
        host.lines += [f'if {rows} == 1 and CONFIG["VECTOR"]:']
        host.lines += [f"    _vector({name}_of_one_row, {out}, {columns}, {depth}, {listed}, {kind}{beside})", "else:"]
        call = f"    {call}"
    host.lines.append(call)
    launches = {"product": LAUNCH, **({"vector": VECTOR_LAUNCH} if single else {})}
    tunables = {**TUNABLES, **(VECTOR_TUNABLES if single else {}), **(BESIDE if beside else {})}
    if block.steps.group is not None:
        del tunables["DEPTH"]
        tunables |= GROUPED
    return Code([*small.values(), *kernels], launches, tunables, set[str]().union(*(k.pen.pieces for k in texts)))


@dataclass(slots=True)
class _Kernel:
    """One kernel of a product: for tensor cores, or of sums for one row (`vector`)."""

    block: Product
    vector: bool
    pen: Pen = field(init=False)
    totals: list[str] = field(init=False)
    sums: list[Expr] = field(init=False)

    def __post_init__(self) -> None:
        self.totals = [f"total_{i}" for i in range(len(self.block.weights))]
        self.sums = sums_inside(self.block.operand.scale)

    def write(self, name: str, loads: list[Node], sizes: list[str]) -> str:
        pointers = [*(f"{x.name}_ptr" for x in loads), *(f"{n.name}_ptr" for n, _ in self.block.more), "out_ptr"]
        names = [f"sum_{i}" for i in range(len(self.sums))]
        names += [f"{kind}_{i}" for kind in ("partial", "scale") for i in range(len(self.totals))]
        names += [f"{kind}_{i}" for kind in ("ahead", "kept") for i in range(len(loads))]
        self.pen = Pen(self.block.root.dtype == "float32", {*sizes, *NAMES.split(), *pointers, *self.totals, *names})
        self._head()
        if self.sums:
            self._sums_before()
        if self.sums and not self.vector:
            self._first_ahead()
        self._loop()
        self._finish()
        constants = ["ROWS", "COLUMNS", "DEPTH", *(["STAGES"] if self.vector else [])]
        constants += ["RANK"] if self.block.low else []
        constants += ["UNROLL"] if self.block.steps.group is not None else []
        constants += ["BESIDE"] if self.sums else []
        parameters = ", ".join([*pointers, *sizes, *(f"{c}: tl.constexpr" for c in [*constants, "INDEX", "TYPE"])])
        return "\n".join(["@triton.jit", f"def {name}({parameters}):", *self.pen.lines])

    @property
    def body(self) -> int:
        """The indentation of the loop's body: groups are unrolled in a loop of their own."""
        return 2 if self.block.steps.group is None else 3

    def emit(self, *lines: str, indent: int = 1) -> None:
        self.pen.lines += [" " * 4 * indent + line for line in lines]

    def _head(self) -> None:
        block = self.block
        rows, columns = whole(block.rows), whole(block.columns)
        self.emit(
            "zero = tl.zeros([1, 1], tl.float32)",
            "m = tl.arange(0, ROWS)[:, None] + tl.program_id(1) * ROWS",
            f"row_inside = m < {rows}",
            "n = tl.program_id(0).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[:, None]",
            f"n = tl.minimum(n, {columns} - 1)",
            "c = tl.program_id(0).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]",
            f"c_inside = c < {columns}",
        )
        shape = "[COLUMNS, DEPTH]" if self.vector else "[ROWS, COLUMNS]"
        self.emit(*(f"{t} = tl.zeros({shape}, tl.float32)" for t in self.totals))
        self.emit(*(f"sum_{i} = tl.zeros([ROWS, DEPTH], tl.float32)" for i in range(len(self.sums))))
        if block.low is not None:
            self.emit(
                "low = tl.zeros([ROWS, RANK], tl.float32)",
                "r = tl.arange(0, RANK)[:, None]",
                f"r_inside = r < {whole(block.low.rank)}",
            )
        if block.steps.group is not None:
            self.emit("j = tl.arange(0, DEPTH)[None, :]")
            if block.steps.parts > 1:
                self.emit(f"j_a = tl.arange(0, {block.steps.parts} * DEPTH)[None, :]")

    def _steps(self, indent: int = 1) -> None:
        """Open the loop along the depth, and say which columns of a step are inside."""
        parts, group, depth = self.block.steps.parts, self.block.steps.group, self.block.depth
        if group is not None:
            self.emit(f"for first in range(0, {whole(depth // group)}, UNROLL):", indent=indent)
            self.emit("    for u in tl.static_range(0, UNROLL):", "        g = first + u", indent=indent)
            return
        width = whole(depth // parts) if parts > 1 else whole(depth)
        many = f"tl.range(0, {width}, DEPTH, num_stages=STAGES)" if self.vector else f"range(0, {width}, DEPTH)"
        self.emit(f"for start in {many}:", indent=indent)
        lines = ["j = start + tl.arange(0, DEPTH)[None, :]", f"column_inside = j < {width}"]
        lines += ["inside = row_inside & column_inside"] if parts == 1 else []
        if parts > 1:
            lines += [
                f"j_a = {parts} * start + tl.arange(0, {parts} * DEPTH)[None, :]",
                f"a_column = j_a < {whole(depth)}",
            ]
            lines += ["a_inside = row_inside & a_column"]
        self.emit(*lines, indent=indent + 1)

    def _sums_before(self) -> None:
        """Sum what a norm needs in a loop of its own, and scale the rows before the product."""
        self.emit("if not BESIDE:")
        self._steps(2)
        w = self.pen.writer({"m"}, " " * 12)
        for number, expr in enumerate(self.sums):
            w.emit(f"sum_{number} += tl.where(inside, {w.value(expr.args[0])}, 0.0)")
        self._scale()

    def _scale(self) -> None:
        """Compute the scale of each row from the sums, inside a branch."""
        w = self.pen.writer({"m"}, " " * 8, masks=("", "row_inside", ""))
        for number, expr in enumerate(self.sums):
            w.rows[expr.number] = w.assign("sum", f"tl.sum(sum_{number}, axis=1, keep_dims=True)")
        assert self.block.operand.scale is not None
        self.emit(f"scale = {w.value(self.block.operand.scale)}", indent=2)

    def _rows(self) -> list[str]:
        """Write the rows' operand of a step. Return its name for each part."""
        parts, group = self.block.steps.parts, self.block.steps.group
        masks, column = ("inside", "row_inside", "column_inside"), "j"
        if group is not None:
            masks = ("row_inside", "row_inside", "")
        elif parts > 1:
            masks = ("a_inside", "row_inside", "a_column")
        column = "j_a" if parts > 1 else "j"
        w, value = self.pen.writer({"m"}, " " * 4 * self.body, masks=masks, column=column), self.block.operand.value
        if self.sums:
            return [self._scaled_rows(value)]
        if self.vector:
            return [w.value(value)]
        name = w.operand(value, "a")
        if not covers(value, frozenset({"m"})):
            name = w.assign("a", f"tl.broadcast_to({name}, [ROWS, {parts} * DEPTH])")
        if parts == 1:
            return [name]
        names = [w.unique_name("a_part") for _ in range(parts)]
        self.emit(f"{', '.join(names)} = tl.split(tl.reshape({name}, [ROWS, DEPTH, {parts}]))", indent=self.body)
        return names

    def _scaled_rows(self, value: Expr) -> str:
        """Write the operand of rows that are normalised: as it is where its sums are taken beside, else scaled.

        What the sums need is loaded once more, into registers and a step ahead. Shared with the operand, it would lie
        in shared memory without swizzling, and all rows in the same banks.
        """
        self.emit("if BESIDE:", indent=2)
        w = self.pen.writer({"m"}, " " * 12)
        name = w.assign("a", w.value(value)) if self.vector else w.operand(value, "a")
        if self.vector:
            for number, expr in enumerate(self.sums):
                w.emit(f"sum_{number} += tl.where(inside, {w.value(expr.args[0])}, 0.0)")
        else:
            self._add_ahead()
        self.emit("else:", indent=2)
        w = self.pen.writer({"m"}, " " * 12)
        scaled = f"{w.value(value)} * scale"
        self.emit(f"{name} = {scaled}" if self.vector else f"{name} = ({scaled}).to(TYPE)", indent=3)
        return name

    def _summed(self) -> list[Expr]:
        """Return the loads that the sums need."""
        return [e for e in walk([s.args[0] for s in self.sums]) if e.op == "load"]

    def _first_ahead(self) -> None:
        """Load what the sums need of the first step."""
        self.emit(
            "if BESIDE:",
            "    j_next = tl.arange(0, DEPTH)[None, :]",
            f"    next_column = j_next < {whole(self.block.depth)}",
        )
        self.emit("next_inside = row_inside & next_column", indent=2)
        self._load_ahead("kept", 2)

    def _load_ahead(self, name: str, indent: int) -> None:
        w = self.pen.writer({"m"}, "    " * indent, masks=("next_inside", "row_inside", "next_column"), column="j_next")
        for number, expr in enumerate(self._summed()):
            w.emit(f"{name}_{number} = {w.raw(expr)}")

    def _add_ahead(self) -> None:
        """Load what the sums need of the next step, and add this step's."""
        self.emit("j_next = j + DEPTH", f"next_column = j_next < {whole(self.block.depth)}", indent=3)
        self.emit("next_inside = row_inside & next_column", indent=3)
        self._load_ahead("ahead", 3)
        ready = {expr.number: f"kept_{number}" for number, expr in enumerate(self._summed())}
        w = self.pen.writer({"m"}, " " * 12, ready=ready)
        for number, expr in enumerate(self.sums):
            w.emit(f"sum_{number} += tl.where(inside, {w.value(expr.args[0])}, 0.0)")
        self.emit(*(f"kept_{number} = ahead_{number}" for number in range(len(ready))), indent=3)

    def _loop(self) -> None:
        grouped = [i for i, w in enumerate(self.block.weights) if self._changes_by_group(w)]
        if grouped:
            self.emit("g_next = 0")
            self._scales_of_group(grouped, "scale", 1)
        self._steps()
        if grouped:
            last = whole(self.block.depth // (self.block.steps.group or 1))
            self.emit(f"g_next = tl.minimum(g + 1, {last} - 1)", indent=self.body)
            self._scales_of_group(grouped, "ahead", self.body)
        rows = self._rows()
        masks = ("column_inside", "", "column_inside") if self.block.steps.group is None else ("", "", "")
        loaded: dict[str, str] = {}
        for total, weight in zip(self.totals, self.block.weights, strict=True):
            by_group = self._changes_by_group(weight)
            for number, (a, part) in enumerate(zip(rows, weight.parts, strict=True)):
                # A weight's row that is beyond the last is the last once more: no mask along the rows.
                w = self.pen.writer({"n"}, " " * 4 * self.body, masks=masks)
                if self.vector:
                    self.emit(f"{total} += {w.value(part)} * {a}", indent=self.body)
                    continue
                small = narrow(part)
                if small is None:
                    tile = w.operand(part, "b")
                else:
                    text = w.raw(small.load)
                    loaded[text] = loaded.get(text) or w.assign("bits", text)
                    tile = w.assign("b", f"{small.name}({loaded[text]}, TYPE)")
                into = f"partial{total[5:]}" if by_group else total
                before = "" if by_group and not number else into
                self.emit(f"{into} = {dot(self.block.a.dtype, a, f'tl.trans({tile})', before)}", indent=self.body)
            if by_group:
                self.emit(f"{total} += partial{total[5:]} * scale{total[5:]}.to(tl.float32)", indent=self.body)
        if self.block.low is not None:
            self.emit("down_inside = r_inside & column_inside", indent=self.body)
            w = self.pen.writer({"r"}, " " * 4 * self.body, masks=("down_inside", "r_inside", "column_inside"))
            down = w.operand(self.block.low.down, "b")
            self.emit(f"low = {dot(self.block.a.dtype, rows[0], f'tl.trans({down})', 'low')}", indent=self.body)
        self.emit(*(f"scale_{i} = ahead_{i}" for i in grouped), indent=self.body)

    @staticmethod
    def _changes_by_group(weight: Weight) -> bool:
        loads = [e for e in walk([weight.scale]) if e.op == "load"] if weight.scale is not None else []
        return any(v == "g" for e in loads for v, _ in e.data[1].terms)

    def _scales_of_group(self, weights: list[int], name: str, indent: int) -> None:
        """Load the scales of the next group: a step ahead, since their many short loads would be waited for."""
        for number in weights:
            expr = self.block.weights[number].scale
            assert expr is not None
            w = self.pen.writer({"m"}, " " * 4 * indent, masks=("c_inside", "", "c_inside"), column="c")
            scale = renamed(expr, {"n": INNER, "g": "g_next"})
            w.emit(f"{name}_{number} = {w.raw(scale) if scale.op == 'load' else w.value(scale)}")

    def _column_value(self, expr: Expr) -> str:
        """Write a value of each weight's row as one of each column."""
        w = self.pen.writer({"m"}, "    ", masks=("c_inside", "", "c_inside"), column="c")
        return w.value(renamed(expr, {"n": INNER}))

    def _finish(self) -> None:
        """Write what follows the loop: scales, the low-rank term, biases, the result."""
        block = self.block
        if self.vector:
            self.emit(*(f"{t} = tl.sum({t}, axis=1)[None, :]" for t in self.totals))
        if self.sums:
            self.emit("if BESIDE:")
            self._scale()
            scaled = [*self.totals, *(["low"] if block.low else [])]
            self.emit(*(f"{t} = {t} * scale" for t in scaled), indent=2)
        self.emit("inside = row_inside & c_inside")
        for total, weight in zip(self.totals, block.weights, strict=True):
            if weight.scale is not None and not self._changes_by_group(weight):
                self.emit(f"{total} = {total} * {self._column_value(weight.scale)}")
            if weight.bias is not None:
                w = self.pen.writer({"m"}, "    ", masks=("inside", "row_inside", "c_inside"), column="c")
                self.emit(f"{total} += {w.value(weight.bias)}")
        named = [*self.totals, *(["side"] if block.low else [])]
        if block.low is not None:
            self._low_term()
        given = dict(zip(map(id, block.products), named, strict=True))
        masks = ("inside", "row_inside", "c_inside")
        w = self.pen.writer({"m"}, "    ", masks=masks, column="c", given=given)
        value, more = w.value(block.out), [(f"{n.name}_ptr", w.value(expr)) for n, expr in block.more]
        held = Tile({"m": block.rows}, block.columns, block.one)
        place = linear((held.at["m"], held.column), (block.rows, block.columns), block.one)
        row = f"m * {whole(block.columns)}" if place.coefficient("m") is not None else "m * 0"
        stores = [("out_ptr", value), *more]
        self.emit(*(f"tl.store({pointer} + ({row}) + c, {stored}, mask=inside)" for pointer, stored in stores))

    def _low_term(self) -> None:
        low = self.block.low
        assert low is not None
        self.emit(
            "k = tl.arange(0, RANK)[None, :]",
            f"k_inside = k < {whole(low.rank)}",
            "side_inside = row_inside & k_inside",
        )
        masks = ("side_inside", "row_inside", "k_inside")
        w = self.pen.writer({"m"}, "    ", masks=masks, column="k", given={id(low.node): "low"})
        value = w.value(low.value)
        w = self.pen.writer({"n"}, "    ", masks=("k_inside", "", "k_inside"), column="k")
        up = w.operand(low.up, "up")
        self.emit(f"side = tl.where(k_inside, {value}, 0.0).to(TYPE)")
        self.emit(f'side = tl.dot(side, tl.trans({up}), input_precision="ieee")')
