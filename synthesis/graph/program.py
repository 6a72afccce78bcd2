"""Make one Program from traced graphs."""

from __future__ import annotations

from collections.abc import Mapping

from synthesis.graph.aten import Graph
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import Program
from synthesis.rules import RULES

ACROSS = "reductions over other dimensions than the last"
WINDOWS = frozenset(f"{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)) | {"pad", "constant_pad_nd"}
# Rules to leave out, step by step, where no kernel can be written with them: their operations stay library calls.
EXCLUDED_RULES: tuple[frozenset[str], ...] = (
    frozenset(),
    WINDOWS,
    frozenset({ACROSS}),
    frozenset({"cat", "concat", "stack"}),
    frozenset({"cat", "concat", "stack", "gather", "cross_entropy_loss", "arange", "tril", "triu", ACROSS}),
)


def read_program(
    graphs: Mapping[str, Graph],
    without: frozenset[str] = frozenset(),
    *,
    wide: bool = False,
    across: bool = False,
    columns: bool = False,
) -> Program:
    """Return the Program of these graphs (by workload, all of one reference). Operations in `without` stay library
    calls; with `wide`, kernels compute with int64; with `across` or `columns`, they reduce over any dimensions, with
    `across` they scan rows and frame tensors, too. Raise Unsupported.
    """
    rules = {name: rule for name, rule in RULES.items() if name not in without}
    across, columns = (asked and ACROSS not in without for asked in (across, columns))
    return Decomposer([graphs[name] for name in sorted(graphs)], rules, wide=wide, across=across, columns=columns).run()
