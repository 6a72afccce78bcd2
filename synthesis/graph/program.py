"""From traced graphs to one Program."""

from __future__ import annotations

from collections.abc import Mapping

from synthesis.graph.aten import Graph
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import Program
from synthesis.rules import RULES

# Rules that are given up, step by step, where a kernel cannot be written with them: the operations stay library calls.
EXCLUDED_RULES: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"cat", "concat", "stack"}),
    frozenset({"cat", "concat", "stack", "gather", "cross_entropy_loss", "arange", "tril", "triu"}),
)


def read_program(graphs: Mapping[str, Graph], without: frozenset[str] = frozenset()) -> Program:
    """The Program of these graphs (by workload, all of one reference); operations in `without` stay library calls.

    Raises Unsupported.
    """
    rules = {name: rule for name, rule in RULES.items() if name not in without}
    return Decomposer([graphs[name] for name in sorted(graphs)], rules).run()
