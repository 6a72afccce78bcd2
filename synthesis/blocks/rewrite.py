"""Find the blocks in a Program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from synthesis.blocks import extreme, pool, scan, volume
from synthesis.blocks.attention import SDPA, use_attention
from synthesis.blocks.batch import use_batch
from synthesis.blocks.block import MATMULS, Block, base, compute
from synthesis.blocks.groups import use_groups
from synthesis.blocks.long_rows import use_long_rows
from synthesis.blocks.product import use_product
from synthesis.errors import Unsupported
from synthesis.graph.nodes import HEADS, Node, Program
from synthesis.graph.sizes import Size
from synthesis.host import BLOCK

Fit = Callable[[Node, Size], tuple[Block, list[Node]]]
"""Returns the block for a call, and what it reads. Raises Unsupported."""


def _fit_pooling(root: Node, one: Size) -> tuple[Block, list[Node]]:
    """Return the block for a pooling: that of planes where it takes such windows, else that of volumes."""
    if root.fn in pool.POOLS:
        try:
            return pool.fit(root, one)
        except Unsupported:
            pass
    return volume.fit(root, one)


CALLS: Mapping[str, Fit] = {
    **dict.fromkeys(volume.VOLUMES, _fit_pooling),
    **dict.fromkeys(extreme.FINDS, extreme.fit),
    scan.CUMSUM: scan.fit,
    scan.FLIP: scan.fit_turned,
}
"""Blocks that stand for one call of the library."""


def use_blocks(program: Program, *, norms_apart: bool = False) -> int:
    """Let blocks compute what they can: attentions, then products with a low-rank term, then products with all that
    follows element by element, then products alone. Return how many blocks there are, those of before among them.

    With `norms_apart` a norm before a product has a kernel of its own.
    """
    count = sum(node.fn == BLOCK for node in program.inputs_first())
    count += sum(use_attention(n, program.one) for n in list(program.inputs_first()) if n.fn in (*MATMULS, SDPA))
    for root in _required(program, alone=False):
        count += use_product(root, _used_by(program), program.one, low_rank=True, norms_apart=norms_apart)
    count += sum(_use_call(node, program.one) for node in list(program.inputs_first()))
    for alone in (False, True):
        for root in _required(program, alone=alone):
            used_by = _used_by(program)
            if root.fn != BLOCK and root.kind in ("pointwise", "library"):
                count += use_product(root, used_by, program.one, norms_apart=norms_apart) or any(
                    use(root, used_by, program.one) for use in (use_groups, use_batch)
                )
    return count


def use_norms(program: Program) -> Program:
    """Let blocks compute layer normalisations of few long rows, with all that follows element by element, and return
    the program."""
    for alone in (False, True):
        for root in _required(program, alone=alone):
            if root.fn != BLOCK and root.kind in ("pointwise", "library"):
                use_long_rows(root, _used_by(program), program.one)
    return program


def _use_call(node: Node, one: Size) -> bool:
    """Let a block compute a call of the library. Return whether there is one that covers it."""
    fit = scan.fit_before if node.kind == "cat" else CALLS.get(node.fn) if node.kind == "library" else None
    if fit is None:
        return False
    try:
        block, read = fit(node, one)
    except Unsupported:
        return False
    compute(node, block, read)
    return True


def _used_by(program: Program) -> Callable[[Node], list[Node]]:
    """Return a function that gives the users of a node."""
    users: dict[int, list[Node]] = {}
    for node in program.inputs_first():
        for child in node.inputs:
            users.setdefault(id(child), []).append(node)
    return lambda node: users.get(id(node), [])


def _required(program: Program, *, alone: bool) -> list[Node]:
    """Return what may have to be in memory, arguments first: results, the operands of calls and reductions, and tensors
    that are put together, such as a recurrence's steps; with `alone`, every call."""
    nodes = list(program.inputs_first())
    wanted = {id(base(output)) for output in program.outputs}
    for node in nodes:
        if node.kind in ("library", "reduce", "cat"):
            wanted |= {id(base(child)) for child in node.inputs}
    return [n for n in nodes if n.kind not in HEADS and (n.kind == "library" if alone else id(n) in wanted)]
