"""Attention in one pass over the keys: softmax(score(q k)) v, split among programs where there are few queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from synthesis.blocks.attend import JOIN, LAUNCH, write_kernel
from synthesis.blocks.block import MATMULS, Code, base, compute, strip, tuple_of
from synthesis.blocks.factors import same
from synthesis.blocks.tile import Tile, attempt, covers, evaluate, reads, symbols, walk
from synthesis.expr import Expr
from synthesis.graph.build import Builder
from synthesis.graph.nodes import FLOATS, Formula, Node
from synthesis.graph.sizes import Affine, Size, product
from synthesis.host import Host
from synthesis.index import Index, linear

LARGEST_HEAD, LARGEST_LATENT = 256, 1024  # more than a head's columns are taken in two pieces
SDPA = "aten.scaled_dot_product_attention.default"
TUNABLES = {
    "KEYS": [64, 128, 32, 256],  # keys of a step
    "QUERIES": [64, 16, 32, 128],  # rows of a program, at most: queries times the heads that share keys
    "PROGRAMS": [264, 132, 528, 396, 1056],  # at least, before keys are split among more
    "ATTEND_WARPS": [4, 2, 8],
    "ATTEND_STAGES": [3, 2, 4],
}
# Three steps of long rows fill the shared memory, so there is one program for each multiprocessor.
LATENT = {"QUERIES": [16, 32, 64], "PROGRAMS": [132, 264, 528], "ATTEND_WARPS": [4, 8], "ATTEND_STAGES": [3, 2, 4]}


@dataclass(slots=True)
class Found:
    """An attention in the graph. `product` stands for q k inside `score`; `safe` rows without keys are zero."""

    q: Node
    k: Node
    v: Node
    score: Node
    product: Node
    transposed: bool
    safe: bool = False


def use_attention(node: Node, one: Size) -> bool:
    """Let a block compute a node that is an attention. Return whether it is one."""
    found = _fused(node, one) if node.fn == SDPA else _written_out(node)
    if found is None or found.q.dtype not in FLOATS or found.q.dtype == "mixed":
        return False
    for group in (*_groups(found), None):
        block = _fit(found, node, group, one)
        if block is not None:
            compute(node, block, reads([block.q, block.k, block.v, block.score], [found.product]))
            return True
    return False


def _written_out(node: Node) -> Found | None:
    if node.fn not in MATMULS or node.rank not in (3, 4):
        return None
    weights, v = (strip(a) for a in node.data[0][:2])
    if weights.fn != "mul" or weights.inputs[0].fn != "exp" or weights.inputs[1].fn != "reciprocal":
        return None
    centred = weights.inputs[0].inputs[0]
    if centred.fn != "sub" or base(centred.inputs[1]).fn not in ("peak", "max"):
        return None
    score = centred.inputs[0]
    if base(centred.inputs[1]).inputs[0] is not score or base(centred.inputs[1]).data != 1:
        return None
    products = list({id(n): n for n in _products(score)}.values())
    if len(products) != 1 or products[0].shape != score.shape or v.rank != node.rank:
        return None
    q, k = products[0].data[0][:2]
    if q.rank != node.rank or k.rank != node.rank:
        return None
    return Found(q, k, v, score, products[0], transposed=products[0].fn != "aten.linear.default")


def _products(node: Node) -> Iterator[Node]:
    if node.fn in MATMULS:
        yield node
    elif node.kind in ("pointwise", "view"):
        for child in node.inputs:
            yield from _products(child)


def _fused(node: Node, one: Size) -> Found | None:
    """Read a call of scaled_dot_product_attention."""
    args, kwargs = node.data
    named = dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args, strict=False)) | kwargs
    q, k, v = named["query"], named["key"], named["value"]
    if named.get("dropout_p") or not q.rank == k.rank == v.rank == 4:
        return None
    build = Builder(one)
    shape = (*q.shape[:-1], k.shape[-2])
    raw = Node("product", "library", "product", (), shape, q.dtype)
    scale = named.get("scale")
    score = build.pointwise("mul", raw, Formula("rsqrt", q.shape[-1]) if scale is None else scale, dtype="float32")
    if named.get("is_causal"):
        seen = build.pointwise("ge", build.iota(shape[-2:], 0), build.iota(shape[-2:], 1))
        score = build.pointwise("where", seen, score, float("-inf"), dtype="float32")
    mask = named.get("attn_mask")
    if isinstance(mask, Node) and mask.dtype == "bool":
        score = build.pointwise("where", mask, score, float("-inf"), dtype="float32")
    elif isinstance(mask, Node):
        score = build.pointwise("add", score, mask, dtype="float32")
    return Found(q, k, v, score, raw, transposed=False, safe=True)


def _groups(found: Found) -> list[tuple[Size, Size]]:
    """Return how many heads may share their keys, and how many sets of keys there are then."""
    heads, known = found.q.shape[-3], []
    node: Node | None = found.k
    while node is not None:
        known += list(node.shape)
        node = node.inputs[0] if node.kind in ("view", "pointwise") and node.inputs else None
    sets = [s for s in known if heads.divisible(s) and s != heads and s.symbols()]
    return [(heads // s, s) for s in {s.values: s for s in sets}.values()]


def _fit(found: Found, node: Node, shared_by: tuple[Size, Size] | None, one: Size) -> Attention | None:
    """Return the block where so many heads share so many sets of keys, None where operands have no place."""
    outer = found.q.shape[:-2]
    queries, keys = found.q.shape[-2], found.k.shape[-1 if found.transposed else -2]
    pairs = {f"o{i}": s for i, s in enumerate(outer)}
    last = f"o{len(outer) - 1}"
    group, pairs[last] = shared_by or (None, outer[-1])
    shared = {} if group is None else {"o2": group}
    depth, depth_v = found.q.shape[-1], node.shape[-1]
    pieces = min(depth.values) > LARGEST_HEAD and all(d & (d - 1) for d in depth.values)
    if max(depth.values) > (LARGEST_LATENT if pieces else LARGEST_HEAD) or min(*depth.values, *depth_v.values) < 2:
        return None
    if max(depth_v.values) > (LARGEST_LATENT // 2 if pieces else LARGEST_HEAD):
        return None

    def batch(tile: Tile) -> Index:
        index = [tile.at[v] for v in pairs]
        if group is not None:
            index[-1] = index[-1].scaled(group) + tile.at["o2"]
        return tuple(index)

    def at(columns: Size, rows: dict[str, Size], what: Node, order: str, leaves: list[Node]) -> Expr:
        tile = Tile({**pairs, **shared, **rows}, columns, one)
        row = tile.at["m" if "m" in rows else "n"]
        last_two = (row, tile.column) if order == "rc" else (tile.column, row)
        index = (*batch(tile), *last_two)
        if group is not None and what.shape[-3] == pairs[last] and what.shape[-3] != outer[-1]:
            index = (*index[:-3], tile.at[last], *last_two)  # keys that are stored once for each group
        zero = Affine.of(tile.zero)
        index = tuple(
            zero if s.equals(1) else p for s, p in zip(what.shape, index[len(index) - what.rank :], strict=True)
        )
        return evaluate(tile, what, index, leaves)

    q = attempt(lambda: at(depth, {"m": queries}, found.q, "rc", []))
    k = attempt(lambda: at(depth, {"n": keys}, found.k, "cr" if found.transposed else "rc", []))
    v = attempt(lambda: at(depth_v, {"n": keys}, found.v, "rc", []))
    score = attempt(lambda: at(keys, {"m": queries}, found.score, "rc", [found.product]))
    if q is None or k is None or v is None or score is None or not q.full:
        return None
    rows = frozenset({"n"})
    if not covers(k, rows) or not covers(v, rows) or (group is not None and _uses([k, v], "o2")):
        return None
    if pieces and any(e.op == "reduce" for e in walk([q, k])):
        return None
    one_tile = (
        pieces and same(k, v) and all(d // 2 < v <= d for d, v in zip(_below(depth), depth_v.values, strict=True))
    )
    return Attention(found, node.shape, pairs, group, q, k, v, score, one, pieces, one_tile)


def _below(size: Size) -> list[int]:
    """Return the largest powers of two that are not above a size."""
    return [1 << (value.bit_length() - 1) for value in size.values]


def _uses(exprs: list[Expr], variable: str) -> bool:
    return any(variable in dict(e.data[1].terms) for e in walk(exprs) if e.op == "load")


@dataclass(slots=True)
class Attention:
    """The expressions of an attention's tiles."""

    found: Found
    shape: tuple[Size, ...]
    pairs: dict[str, Size]
    group: Size | None
    q: Expr
    k: Expr
    v: Expr
    score: Expr
    one: Size
    pieces: bool  # the queries' depth: a power of two, and the rest
    shared: bool  # values are the first piece of the keys
    title: str = "attention"

    @property
    def upright(self) -> bool:
        """Return true if neighbouring keys are neighbours in memory: their tile then has keys along its columns."""
        loads = [e.data[1] for e in walk([self.k]) if e.op == "load" and e.full]
        by_key = all(o.coefficient("n") is not None and o.coefficient("n").equals(1) for o in loads)
        return by_key and not self.shared and not any(e.op == "reduce" for e in walk([self.k]))

    @property
    def queries(self) -> Size:
        return self.found.q.shape[-2]

    @property
    def keys(self) -> Size:
        return self.found.k.shape[-1 if self.found.transposed else -2]

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and their launch."""
        depth, depth_v = self.found.q.shape[-1], self.shape[-1]
        tile = Tile({**self.pairs, **({"o2": self.group} if self.group else {}), "m": self.queries}, depth_v, self.one)
        batch = [tile.at[v] for v in self.pairs]
        if self.group is not None:
            batch[-1] = batch[-1].scaled(self.group) + tile.at["o2"]
        row = linear((*batch, tile.at["m"]), self.shape[:-1], self.one)
        exprs = [self.q, self.k, self.v, self.score]
        loads = reads(exprs, [self.found.product])
        extents: list[Size | Affine] = [
            *self.pairs.values(),
            self.queries,
            self.keys,
            depth,
            depth_v,
            row,
            *([self.group] if self.group else []),
        ]
        sizes = symbols(exprs, extents)
        name = f"attend_{node.name}"
        text, pieces = write_kernel(self, name, loads, sizes, row)
        arguments = [host.contiguous(n) for n in loads]
        out = host.allocate(node, host.device())
        host.used_symbols |= set(sizes)
        pairs, rows = product(self.pairs.values(), self.one), self.queries * (self.group or self.one)
        numbers = [host.size(s) for s in (pairs, rows, self.keys, depth, depth_v)]
        listed = f"{tuple_of(arguments)}, {tuple_of(sizes)}"
        kind, safe = host.dtype(self.found.q.dtype), self.found.safe
        more = (", shared=True" if self.shared else "") + (", pieces=True" if self.pieces else "")
        host.lines.append(f"_attend({name}, {out}, {', '.join(numbers)}, {listed}, _TYPES[{kind}], safe={safe}{more})")
        tunables = dict(TUNABLES)
        if any(e.op == "reduce" for e in walk([self.k, self.v])):
            tunables["ATTEND_WARPS"] = [8, 4, 2]  # each thread holds less of the rows that it reduces
        if self.pieces:
            tunables |= LATENT
        return Code([text, JOIN], {"attend": LAUNCH}, tunables, pieces)
