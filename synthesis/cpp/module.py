"""Write a whole C++ Candidate: kernels, their calls, and ModelNew."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from synthesis.cpp.kernel import CppKernel, write_kernel
from synthesis.cpp.prelude import prelude
from synthesis.cpp.processor import Processor
from synthesis.expr import COSTLY
from synthesis.graph.nodes import Node, Program
from synthesis.host import BLOCK, Host
from synthesis.kernel import Kernel
from synthesis.plan import Plan, Planner
from synthesis.reference import model_parts
from synthesis.shares import library_calls, told

SHORT_ROW = 64  # elements
MANY = 4  # reads of padded tensors
STREAM_STORES = [0, 1]
PREFETCH = [0, 512, 2048, 8192]  # bytes
TILE = [64, 32, 16]  # rows, and their elements


def write_module(
    plan: Plan,
    planner: Planner,
    processor: Processor,
    *,
    keep: bool,
    title: str,
    passes: str = "",
    parallel: bool = False,
) -> str:
    """Write a C++ Candidate at the first value of each Tunable. Raise Unsupported.

    `passes` is what the header says of kernels with several passes over a row (of values kept between them).
    """
    program = plan.program
    host = Host(program, planner)
    kernels: list[CppKernel] = []
    calls: set[int] = set()
    for step in plan.steps:
        if isinstance(step, Kernel):
            kernels.append(write_kernel(step, processor, keep=keep, parallel=parallel))
            _call_kernel(host, kernels[-1])
        else:
            calls.add(id(step))
            host.call(step)
    host.results()
    rows = [s for s, k in zip(_kernels(plan), kernels, strict=True) if not k.widths]
    costly = any(e.op in COSTLY for k in _kernels(plan) for e in k.exprs())
    tunables = {"VECTOR": processor.vectors(costly=costly), "UNROLL": _unroll(rows), "STREAM_STORES": STREAM_STORES}
    if any("load_ahead" in k.pieces for k in kernels):
        tunables["PREFETCH"] = PREFETCH
    if any(k.kept for k in kernels):
        tunables["KEEP_IN_OUTPUT"] = [0, 1]
    if wanted := [k.widths for k in kernels if k.widths]:
        tunables["STRIP"] = min(wanted)
    if any(k.tiled for k in kernels):
        tunables["TILE"] = TILE
    config = {name: values[0] for name, values in tunables.items()}
    several = any(k.kept for k in kernels) if keep else any(s.passes > 1 for s in _kernels(plan))
    title = f"{title}; {passes}." if passes and several else f"{title}."
    return _render(program, plan, host, kernels, tunables, config, title)


def _kernels(plan: Plan) -> list[Kernel]:
    return [s for s in plan.steps if isinstance(s, Kernel)]


def _unroll(kernels: Sequence[Kernel]) -> list[int]:
    """Return how many vectors to take at a time, the first guess first.

    That is one where rows with reductions are short, and where each takes many instructions.
    """
    rows = [k for k in kernels if k.in_order]
    if any(sum(e.op == "padded" for e in k.exprs()) > MANY for k in kernels):
        return [1, 2, 4]
    short = rows and all(n < SHORT_ROW for kernel in rows for n in kernel.length.values)
    return [1, 4, 2, 8] if short else [4, 1, 2, 8]


def _call_kernel(host: Host, kernel: CppKernel) -> None:
    arguments = [f"{host.contiguous(node)}.data_ptr()" for node in kernel.reads]
    arguments += [f"{host.allocate(node, None)}.data_ptr()" for node in kernel.writes]
    arguments += [*kernel.sizes, *["torch.get_num_threads()"] * kernel.parallel]
    host.used_symbols |= set(kernel.sizes)
    host.lines.append(f"_{kernel.name}({', '.join(arguments)})")


def header(program: Program, plan: Plan, title: str, *, timed: bool = False) -> str:
    """Return the comment on top: the strategy, the fused operations and the library calls (`timed`: with their share of
    the time on a GPU)."""
    fused = list(dict.fromkeys(program.fused))
    blocks = [s.data.title for s in plan.steps if isinstance(s, Node) and s.fn == BLOCK]
    lines = [title, f"Fused: {', '.join(fused) or 'nothing'}."]
    if blocks:
        lines.append(f"Blocks: {', '.join(blocks)}.")
    if library_calls(plan):
        lines.append(f"{told(plan, timed=timed)}.")
    return "\n".join(f"# {part}" for line in lines for part in textwrap.wrap(line, 118))


def model_class(program: Program, host: Host) -> tuple[str, list[str]]:
    """Return (class ModelNew, statements above it that its constructor needs)."""
    base, body, needed = model_parts(program.source)
    sizes = host.size_lines(host.used_symbols)
    dense = [
        line for line in host.lines if line.endswith(".contiguous()") and line.split(" = ")[0] in program.arguments
    ]
    rest = [line for line in host.lines if line not in dense]
    forward = [f"def forward(self, {', '.join(program.arguments)}):"] if program.arguments else ["def forward(self):"]
    forward += [f"    {line}" for line in [*dense, *sizes, *rest]]
    parts = [body, "\n".join(forward)] if body else ["\n".join(forward)]
    return f"class ModelNew({base}):\n" + textwrap.indent("\n\n".join(parts), "    "), needed


def uses_functional(model: str, needed: Sequence[str]) -> bool:
    """Return whether torch.nn.functional is needed under the name that Candidates give it."""
    return any(re.search(r"\bF\.", text) for text in (model, *needed))


def _render(
    program: Program,
    plan: Plan,
    host: Host,
    kernels: list[CppKernel],
    tunables: Mapping[str, list[int]],
    config: Mapping[str, int],
    title: str,
) -> str:
    model, needed = model_class(program, host)
    pieces = set().union(*(k.pieces for k in kernels)) - {"algorithm"} if kernels else set()
    source = "#include <algorithm>\n" + prelude(pieces) + "\n\n" + "\n\n".join(k.text for k in kernels)
    head = [
        header(program, plan, title),
        "import ctypes",
        "",
        "import torch",
        "import torch.nn.functional as F",
        "from torch import nn",
    ]
    head += ["", "from warpwright_native import load_cpp", "", *needed]
    if not uses_functional(model, needed):
        head.remove("import torch.nn.functional as F")
    bindings = []
    for kernel in kernels:
        pointers = len(kernel.reads) + len(kernel.writes)
        bindings.append(f"_{kernel.name} = _library.{kernel.name}")
        integers = f"[ctypes.c_int64] * {len(kernel.sizes)}{' + [ctypes.c_int]' * kernel.parallel}"
        bindings.append(f"_{kernel.name}.argtypes = [ctypes.c_void_p] * {pointers} + {integers}")
        bindings.append(f"_{kernel.name}.restype = None")
    text = "\n".join(head) + f"\n\nTUNABLES = {dict(tunables)!r}\nCONFIG = {dict(config)!r}\n\n"
    text += (
        f'SOURCE = r"""\n{source}\n"""\n\n_library = load_cpp(SOURCE, defines=CONFIG, flags=["-ffp-contract=off"])\n'
        + "\n".join(bindings)
    )
    return f"{text}\n\n\n{model}\n"
