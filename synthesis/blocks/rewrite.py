"""Find the blocks in a Program."""

from __future__ import annotations

import functools

from synthesis.blocks.attention import SDPA, use_attention
from synthesis.blocks.batch import use_batch
from synthesis.blocks.block import MATMULS, base
from synthesis.blocks.extreme import use_extreme
from synthesis.blocks.groups import use_groups
from synthesis.blocks.pool import use_pool
from synthesis.blocks.product import use_product
from synthesis.blocks.scan import use_scan
from synthesis.graph.nodes import HEADS, Node, Program
from synthesis.host import BLOCK


def use_blocks(program: Program, *, norms_apart: bool = False) -> int:
    """Let blocks compute what they can: attentions, then products with a low-rank term, then products with all that
    follows element by element, then products alone. Return how many blocks there are.

    With `norms_apart` a norm before a product has a kernel of its own.
    """
    count = sum(use_attention(n, program.one) for n in _nodes(program) if n.fn in (*MATMULS, SDPA))
    for root in _required(program, alone=False):
        users = _users(program)
        used_by = functools.partial(lambda u, n: u.get(id(n), []), users)
        count += use_product(root, used_by, program.one, low_rank=True, norms_apart=norms_apart)
    for node in _nodes(program):
        count += use_pool(node) or any(use(node, program.one) for use in (use_scan, use_extreme, use_batch))
    for alone in (False, True):
        for root in _required(program, alone=alone):
            users = _users(program)
            used_by = functools.partial(lambda u, n: u.get(id(n), []), users)
            if root.fn != BLOCK and root.kind in ("pointwise", "library"):
                count += use_product(root, used_by, program.one, norms_apart=norms_apart) or use_groups(
                    root, used_by, program.one
                )
    return count


def _nodes(program: Program) -> list[Node]:
    """Return all nodes, arguments before users."""
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) not in found:
            for child in node.inputs:
                visit(child)
            found[id(node)] = node

    for output in program.outputs:
        visit(output)
    return list(found.values())


def _users(program: Program) -> dict[int, list[Node]]:
    users: dict[int, list[Node]] = {}
    for node in _nodes(program):
        for child in node.inputs:
            users.setdefault(id(child), []).append(node)
    return users


def _required(program: Program, *, alone: bool) -> list[Node]:
    """Return what may have to be in memory, arguments first: results and what calls and reductions read; with
    `alone`, every call."""
    nodes = _nodes(program)
    wanted = {id(base(output)) for output in program.outputs}
    for node in nodes:
        if node.kind in ("library", "reduce"):
            wanted |= {id(base(child)) for child in node.inputs}
    return [n for n in nodes if n.kind not in HEADS and (n.kind == "library" if alone else id(n) in wanted)]
