"""Group normalisation with all that follows element by element: one kernel where a group fits the registers of a
program, else one that summarises each channel and one that normalises it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from synthesis.blocks.block import Block, Code, compute, tuple_of
from synthesis.blocks.tile import Tile, TileWriter, attempt, evaluate, reads, symbols, whole
from synthesis.errors import Unsupported
from synthesis.expr import Expr
from synthesis.graph.build import Builder
from synthesis.graph.nodes import FLOATS, HEADS, Node
from synthesis.graph.sizes import Size, product
from synthesis.host import Host

GROUP_NORM = "aten.group_norm.default"
TUNABLES = {
    "HELD_GROUP": [32768, 65536, 0],  # elements of a group that one program holds, at most
    "GROUP_ELEMENTS": [32, 16, 64],  # of a thread
    "CHANNEL_BLOCK": [4096, 2048, 1024, 8192],
    "CHANNEL_WARPS": [4, 8, 2],
}


def use_groups(root: Node, users: Callable[[Node], list[Node]], one: Size) -> bool:
    """Let a block compute `root`, a group normalisation or an element-wise result of one that has no other use.

    Return whether there is such a block.
    """

    def fit(norm: Node) -> tuple[Groups, list[Node]]:
        block = _fit(root, norm, one)
        return block, reads([block.x_of_channel, block.out_of_channel], [block.normal])

    return use_norm(root, users, GROUP_NORM, fit)


def _fit(root: Node, norm: Node, one: Size) -> Groups:
    args = norm.data[0]
    x, groups = args[0], args[1]
    weight, bias, eps = [*args[2:5], *(None, None, 1e-5)[max(0, len(args) - 2) :]][:3]
    eps = norm.data[1].get("eps", eps)
    if x.rank < 3 or x.dtype not in FLOATS or root.shape != norm.shape or not isinstance(groups, int):
        raise Unsupported("a group normalisation of another form")
    batch, channels, length = x.shape[0], x.shape[1], product(x.shape[2:], one)
    group = channels // Size.literal(groups, one)
    if min(length.values) < 2 or any(c % groups for c in channels.values):
        raise Unsupported("groups without elements")
    build = Builder(one)
    normal = Node("normal", "library", "normal", (), (batch, channels, length), "float32")
    value = affine(build, normal, weight, bias, (channels, one), norm.dtype)
    out = flat(root, norm, value, build, lambda node: over_channels(node, norm, build, normal.shape))
    source = build.reshape(x if x.kind in (*HEADS, "library", "item") else _leaf(x), normal.shape)

    def at(node: Node, *, held: bool) -> Expr:
        sizes = {"o0": batch, "o1": Size.literal(groups, one), "o2": group} if held else {"o0": batch, "o1": channels}
        tile = Tile(sizes, length, one)
        channel = tile.at["o1"].scaled(group) + tile.at["o2"] if held else tile.at["o1"]
        made = attempt(lambda: evaluate(tile, node, (tile.at["o0"], channel, tile.column), [normal, x]))
        if made is None:
            raise Unsupported("a group normalisation of computed values")
        return made

    of_channel, of_group = ([at(node, held=held) for node in (source, out)] for held in (False, True))
    shape = (batch, channels, groups, group, length)
    return Groups(root, normal, *shape, float(eps), of_channel[0], of_channel[1], of_group[0], of_group[1])


def _leaf(node: Node) -> Node:
    while node.kind == "view":
        if node.fn != "reshape":
            raise Unsupported("a normalisation of a view")
        node = node.inputs[0]
    return node


def use_norm(
    root: Node, users: Callable[[Node], list[Node]], call: str, fit: Callable[[Node], tuple[Block, Iterable[Node]]]
) -> bool:
    """Let a block compute `root`, a normalisation by a library or an element-wise result of one that has no other use.

    `fit` returns the block for a normalisation, and what it reads, or raises Unsupported. Return whether there is such
    a block.
    """
    norm = _norm_of(root, users, call)
    if norm is None:
        return False
    try:
        block, inputs = fit(norm)
    except Unsupported:
        return False
    compute(root, block, inputs)
    return True


def _norm_of(root: Node, users: Callable[[Node], list[Node]], call: str) -> Node | None:
    """Return the one normalisation by a library that `root` is or follows element by element, without other uses."""
    cone = _cone(root)
    found = [n for n in cone if n.fn == call]
    inside = {id(n) for n in cone}
    if len(found) != 1 or any(id(u) not in inside for n in cone if n is not root for u in users(n)):
        return None
    return found[0]


def _cone(root: Node) -> list[Node]:
    """Return the element-wise nodes down to the first library calls, these included."""
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) not in found and node.kind in ("pointwise", "library"):
            found[id(node)] = node
            for child in node.inputs if node.kind == "pointwise" else ():
                visit(child)

    visit(root)
    return list(found.values())


def flat(node: Node, norm: Node, value: Node, build: Builder, operand: Callable[[Node], Node]) -> Node:
    """Return the same element-wise result with `value` for the norm, and with what `operand` makes of other tensors."""
    if node is norm:
        return value
    if node.kind == "constant":
        return node
    if node.kind == "pointwise":
        inputs = tuple(flat(i, norm, value, build, operand) for i in node.inputs)
        shape = build.broadcast([i.shape for i in inputs])
        return Node(node.name, "pointwise", node.fn, inputs, shape, node.dtype, node.data)
    return operand(node)


def over_channels(node: Node, norm: Node, build: Builder, shape: tuple[Size, ...]) -> Node:
    """Return a tensor over (batch, channels, all the rest). Raise Unsupported."""
    if node.shape == norm.shape:
        return build.reshape(node, shape)
    rest = norm.rank - 2
    if node.rank >= rest and all(s.equals(1) for s in node.shape[node.rank - rest :]):
        return build.reshape(node, (*node.shape[: node.rank - rest], build.one))
    raise Unsupported("an operand of another shape")


def affine(
    build: Builder, normal: Node, weight: Node | None, bias: Node | None, shape: tuple[Size, ...], dtype: str
) -> Node:
    """Return normalised values times `weight` plus `bias`, reshaped, as far as there are any: of `dtype` then."""
    value = normal
    for fn, vector in (("mul", weight), ("add", bias)):
        if vector is not None:
            value = build.pointwise(fn, value, build.reshape(vector, shape), dtype="float32")
    value.dtype = dtype if value is not normal else "float32"
    return value


@dataclass(slots=True)
class Groups:
    """A group normalisation's expressions, of a channel and of a group's tile (channels by elements)."""

    root: Node
    normal: Node
    batch: Size
    channels: Size
    groups: int
    group: Size
    length: Size
    eps: float
    x_of_channel: Expr
    out_of_channel: Expr
    x_of_group: Expr
    out_of_group: Expr
    title: str = "group normalisation"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and their launch."""
        exprs = [self.x_of_channel, self.out_of_channel, self.x_of_group, self.out_of_group]
        loads = reads(exprs, [self.normal])
        sizes = symbols(exprs, [self.batch, self.channels, self.group, self.length])
        pieces: set[str] = set()
        name = node.name
        kernels = [self._held(name, loads, sizes, pieces), self._summary(name, loads, sizes, pieces)]
        kernels.append(self._normalise(name, loads, sizes, pieces))
        arguments = [host.contiguous(n) for n in loads]
        out = host.allocate(node, host.device())
        host.used_symbols |= set(sizes)
        numbers = [host.size(s) for s in (self.batch, self.channels, self.length)]
        names = f"hold_groups_{name}, summarise_{name}, normalise_{name}"
        listed = f"{tuple_of(arguments)}, {tuple_of(sizes)}"
        host.lines.append(f"_groups({names}, {out}, {', '.join(numbers)}, {self.groups}, {listed})")
        return Code(kernels, {"groups": LAUNCH}, dict(TUNABLES), pieces)

    def _writer(self, lines: list[str], pieces: set[str], used: set[str], indent: str, rows: str) -> TileWriter:
        return TileWriter(
            None, "held", self.root.dtype == "float32", lines, pieces, {}, {}, used, indent,  # type: ignore[arg-type]
            given={id(self.normal): "normal"}, row_variables=frozenset({rows}),
        )  # fmt: skip

    def _parameters(self, name: str, loads: list[Node], more: list[str], sizes: list[str], constants: list[str]) -> str:
        pointers = [f"{n.name}_ptr" for n in loads] + more
        listed = [*pointers, *sizes, *(f"{c}: tl.constexpr" for c in constants)]
        return f"@triton.jit\ndef {name}({', '.join(listed)}):"

    def _held(self, name: str, loads: list[Node], sizes: list[str], pieces: set[str]) -> str:
        head = self._parameters(f"hold_groups_{name}", loads, ["out_ptr"], sizes, ["ROWS", "BLOCK", "INDEX"])
        group, length = whole(self.group), whole(self.length)
        used = {*sizes, "o0", "o1", "o2", "j", "zero", "mean", "centred", "variance", "normal", "program", "place"}
        used |= {f"{n.name}_ptr" for n in loads}
        lines = [
            "    zero = tl.zeros([1, 1], tl.float32)",
            "    program = tl.program_id(0).to(INDEX)",
            f"    o0 = program // {self.groups}",
            f"    o1 = program % {self.groups}",
            "    o2 = tl.arange(0, ROWS)[:, None]",
            f"    row_inside = o2 < {group}",
            "    j = tl.arange(0, BLOCK)[None, :]",
            f"    column_inside = j < {length}",
            "    inside = row_inside & column_inside",
        ]
        x = self._writer(lines, pieces, used, "    ", "o2").value(self.x_of_group)
        lines += [
            f"    mean = tl.sum(tl.where(inside, {x}, 0.0)) / ({group} * {length})",
            f"    centred = tl.where(inside, {x} - mean, 0.0)",
            f"    variance = tl.sum(centred * centred) / ({group} * {length})",
            f"    normal = centred * (1.0 / tl.sqrt(variance + {self.eps!r}))",
        ]
        value = self._writer(lines, pieces, used, "    ", "o2").value(self.out_of_group)
        lines.append(f"    place = ((o0 * {self.groups} + o1) * {group} + o2) * {length}")
        lines.append(f"    tl.store(out_ptr + place + j, {value}, mask=inside)")
        return "\n".join([head, *lines])

    def _summary(self, name: str, loads: list[Node], sizes: list[str], pieces: set[str]) -> str:
        more = ["means_ptr", "squares_ptr"]
        head = self._parameters(f"summarise_{name}", loads, more, sizes, ["BLOCK", "INDEX"])
        used = {
            *sizes,
            "o0",
            "o1",
            "j",
            "zero",
            "mean",
            "square",
            "steps",
            "change",
            "start",
            "count",
            "total",
            "program",
        }
        used |= {f"{n.name}_ptr" for n in loads}
        length = whole(self.length)
        lines = [
            '    """Mean and squared deviations of a channel; every lane keeps its own until the end."""',
            "    zero = tl.zeros([1, 1], tl.float32)",
            "    program = tl.program_id(0).to(INDEX)",
            f"    o0 = program // {whole(self.channels)}",
            f"    o1 = program % {whole(self.channels)}",
            "    mean = tl.zeros([1, BLOCK], tl.float32)",
            "    square = tl.zeros([1, BLOCK], tl.float32)",
            "    steps = 0.0",
            f"    for start in range(0, {length}, BLOCK):",
            "        j = start + tl.arange(0, BLOCK)[None, :]",
            f"        column_inside = j < {length}",
            "        inside = column_inside",
        ]
        x = self._writer(lines, pieces, used, "        ", "o2").value(self.x_of_channel)
        lines += [
            "        steps += 1.0",
            f"        change = tl.where(column_inside, {x} - mean, 0.0)",
            "        mean += change * (1.0 / steps)",
            f"        square += change * tl.where(column_inside, {x} - mean, 0.0)",
            f"    count = (({length} - tl.arange(0, BLOCK)[None, :] + BLOCK - 1) // BLOCK).to(tl.float32)",
            "    count = tl.maximum(count, 0.0)",
            f"    total = tl.sum(mean * count) / {length}",
            "    square = tl.sum(square + count * (mean - total) * (mean - total))",
            "    tl.store(means_ptr + program, total)",
            "    tl.store(squares_ptr + program, square)",
        ]
        return "\n".join([head, *lines])

    def _normalise(self, name: str, loads: list[Node], sizes: list[str], pieces: set[str]) -> str:
        more = ["means_ptr", "squares_ptr", "out_ptr"]
        head = self._parameters(f"normalise_{name}", loads, more, sizes, ["ROWS", "BLOCK", "INDEX"])
        used = {*sizes, "o0", "o1", "j", "zero", "mean", "means", "squares", "apart", "variance", "normal", "program"}
        used |= {"first", "other", "own"} | {f"{n.name}_ptr" for n in loads}
        group, length, channels = whole(self.group), whole(self.length), whole(self.channels)
        lines = [
            '    """Join the summaries of a group\'s channels, then write one of them."""',
            "    zero = tl.zeros([1, 1], tl.float32)",
            "    program = tl.program_id(0).to(INDEX)",
            f"    o0 = program // {channels}",
            f"    o1 = program % {channels}",
            f"    first = program - o1 % {group}",
            "    other = tl.arange(0, ROWS)",
            f"    own = other < {group}",
            "    means = tl.load(means_ptr + first + other, mask=own, other=0.0)",
            "    squares = tl.load(squares_ptr + first + other, mask=own, other=0.0)",
            f"    mean = tl.sum(means) / {group}",
            "    apart = tl.where(own, means - mean, 0.0)",
            f"    variance = (tl.sum(squares) + tl.sum(apart * apart) * {length}) / ({group} * {length})",
            "    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]",
            f"    column_inside = j < {length}",
            "    inside = column_inside",
        ]
        x = self._writer(lines, pieces, used, "    ", "o2").value(self.x_of_channel)
        lines.append(f"    normal = ({x} - mean) * (1.0 / tl.sqrt(variance + {self.eps!r}))")
        value = self._writer(lines, pieces, used, "    ", "o2").value(self.out_of_channel)
        lines.append(f"    tl.store(out_ptr + program * {length} + j, {value}, mask=inside)")
        return "\n".join([head, *lines])


LAUNCH = '''
def _groups(hold, summarise, normalise, out, batch, channels, length, groups, tensors, sizes):
    """One program for each group that it can hold; else one for each channel, twice."""
    rows, block = triton.next_power_of_2(channels // groups), triton.next_power_of_2(length)
    index = _index(tensors)
    if rows * block <= CONFIG["HELD_GROUP"]:
        warps = max(1, min(32, rows * block // (32 * CONFIG["GROUP_ELEMENTS"])))
        hold[(batch * groups,)](*tensors, out, *sizes, ROWS=rows, BLOCK=block, INDEX=index, num_warps=warps)
        return
    block = min(block, CONFIG["CHANNEL_BLOCK"])
    summary = [torch.empty((batch, channels), dtype=torch.float32, device=out.device) for _ in range(2)]
    options = {"BLOCK": block, "INDEX": index, "num_warps": CONFIG["CHANNEL_WARPS"]}
    summarise[(batch * channels,)](*tensors, *summary, *sizes, **options)
    grid = (batch * channels, triton.cdiv(length, block))
    normalise[grid](*tensors, *summary, out, *sizes, ROWS=rows, **options)
'''
