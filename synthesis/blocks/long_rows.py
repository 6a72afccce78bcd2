"""Layer normalisation of few long rows, as of whole images, with all that follows element by element.

Programs summarise slices of rows, as in `batch`. A second kernel joins the summaries of a row in every program, and
writes a slice: rows are read twice, and by all processors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from synthesis.blocks.batch import SUMMARISE, TUNABLES, joined
from synthesis.blocks.block import Code, tuple_of
from synthesis.blocks.groups import affine, flat, use_norm
from synthesis.blocks.tile import Pen, Tile, evaluate, reads, symbols, whole
from synthesis.errors import Unsupported
from synthesis.expr import Expr
from synthesis.graph.build import Builder
from synthesis.graph.nodes import FLOATS, Node, is_in_memory
from synthesis.graph.sizes import Size, product
from synthesis.host import Host

LAYER_NORM = "aten.layer_norm.default"
NAMES = (
    "zero o0 j program first own other known means squares counts count mean apart of_means of_squares variance scale"
    " start x normal inside column_inside parts row_count"
)


def use_long_rows(root: Node, users: Callable[[Node], list[Node]], one: Size) -> bool:
    """Let a block compute `root`, a layer normalisation or an element-wise result of one that has no other use.

    Return whether there is such a block.
    """

    def fit(norm: Node) -> tuple[LongRows, list[Node]]:
        block = _fit(root, norm, one)
        return block, [block.x, *(n for n in reads([block.out], [block.normal]) if n is not block.x)]

    return use_norm(root, users, LAYER_NORM, fit)


def _fit(root: Node, norm: Node, one: Size) -> LongRows:
    args, named = norm.data
    given = dict(zip(("input", "shape", "weight", "bias", "eps"), args, strict=False)) | named
    x, rank, eps = given["input"], len(given["shape"]), given.get("eps", 1e-5)
    if (
        x.dtype not in FLOATS
        or root.shape != norm.shape
        or not isinstance(eps, float)
        or not is_in_memory(x, reshaped=True)
    ):
        raise Unsupported("a layer normalisation of another form")
    lead, row = x.shape[:-rank], x.shape[-rank:]
    rows, length, build = product(lead, one), product(row, one), Builder(one)
    normal = Node("normal", "library", "normal", (), (rows, length), "float32")
    value = affine(build, normal, given.get("weight"), given.get("bias"), (length,), norm.dtype)

    def operand(node: Node) -> Node:
        """Return a tensor over (rows, all of a row). Raise Unsupported."""
        if node.shape == norm.shape:
            return build.reshape(node, (rows, length))
        if node.shape == row:
            return build.reshape(node, (length,))
        if node.shape[:-rank] == lead and all(s.equals(1) for s in node.shape[-rank:]):
            return build.reshape(node, (rows, one))
        raise Unsupported("an operand of another shape")

    tile = Tile({"o0": rows}, length, one)
    made = flat(root, norm, value, build, operand)
    out = evaluate(tile, made, (tile.at["o0"], tile.column), [normal])
    return LongRows(root, normal, x, rows, length, eps, out)


@dataclass(slots=True)
class LongRows:
    """Rows of `x`, and the values that follow from the `normal` ones."""

    root: Node
    normal: Node
    x: Node
    rows: Size
    length: Size
    eps: float
    out: Expr
    title: str = "layer normalisation of long rows"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and their launch."""
        loads = reads([self.out], [self.normal])
        sizes = symbols([self.out], [self.length])
        name = f"normalise_{node.name}"
        pointers = [f"{n.name}_ptr" for n in loads]
        pen = Pen(self.root.dtype == "float32", {*NAMES.split(), *sizes, *pointers})
        given = ["rows_ptr", *pointers, "out_ptr", "of_means", "of_squares", *sizes, "parts"]
        constants = ("SLICE", "PARTS", "BLOCK", "WHOLE", "INDEX")
        listed = ", ".join([*given, *(f"{c}: tl.constexpr" for c in constants)])
        pen.lines += ["@triton.jit", f"def {name}({listed}):"]
        pen.lines += HEAD.replace("LENGTH", whole(self.length)).replace("EPS", repr(self.eps)).splitlines()
        writer = pen.writer({"o0"}, "        ", masks=("inside", "", "inside"), given={id(self.normal): "normal"})
        value = writer.value(self.out)
        pen.lines.append(f"        tl.store(out_ptr + o0 * {whole(self.length)} + j, {value}, mask=inside)")
        source, arguments = host.contiguous(self.x), [host.contiguous(n) for n in loads]
        out = host.allocate(node, host.device())
        host.used_symbols |= set(sizes)
        listed = f"{tuple_of(arguments)}, {tuple_of(sizes)}"
        host.lines.append(
            f"_long_rows({name}, {source}, {out}, {host.size(self.rows)}, {host.size(self.length)}, {listed})"
        )
        return Code([SUMMARISE, "\n".join(pen.lines)], {"long_rows": LAUNCH}, dict(TUNABLES), pen.pieces)


HEAD = f'''    """Join the summaries of a row, and write a slice of it: the last ones first."""
    zero = tl.zeros([1, 1], tl.float32)
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    row_count = tl.num_programs(0) // parts
    o0 = (program % row_count).to(INDEX)  # programs that follow each other share the weights of a slice
    first = program // row_count * SLICE
    own = tl.minimum(SLICE, LENGTH - first)
{joined("o0", "tl.minimum(SLICE, LENGTH - other * SLICE)", "LENGTH")}
    scale = 1.0 / tl.sqrt(variance + EPS)
    for start in range(0, own, BLOCK):
        j = (first + start).to(INDEX) + tl.arange(0, BLOCK)[None, :]
        inside = tl.full([1, BLOCK], True, tl.int1) if WHOLE else j < LENGTH
        x = tl.load(rows_ptr + o0 * LENGTH + j, mask=inside, other=0).to(tl.float32)
        normal = (x - mean) * scale'''
LAUNCH = '''
def _long_rows(kernel, x, out, rows, length, tensors, sizes):
    """A program for each slice of a row."""
    slice_, block = CONFIG["SLICE"], min(CONFIG["SLICE_BLOCK"], triton.next_power_of_2(length))
    while slice_ > block and rows * length < 4 * _processors(x.device) * slice_:
        slice_ //= 2
    while length > 512 * slice_:
        slice_ *= 2  # every program of the second kernel reads the summaries of a row
    parts = triton.cdiv(length, slice_)
    summary = [torch.empty((rows, parts), dtype=torch.float32, device=x.device) for _ in range(2)]
    options = {"SLICE": slice_, "BLOCK": block, "WHOLE": length % block == 0, "INDEX": _index((x, *tensors))}
    options["num_warps"] = min(CONFIG["SLICE_WARPS"], max(1, block // 128))
    grid = (rows * parts,)
    summarise_slices[grid](x, *summary, 1, rows, length, parts, block, IMAGES=1, **options)
    kernel[grid](x, *tensors, out, *summary, *sizes, parts, PARTS=triton.next_power_of_2(parts), **options)
'''
