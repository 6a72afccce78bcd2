"""Write a whole Triton Candidate: kernels, their launches, and ModelNew."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from synthesis.blocks.block import Code
from synthesis.cpp.module import header, model_class, uses_functional
from synthesis.graph.nodes import QUANTISED, Node, Program
from synthesis.host import BLOCK, Host
from synthesis.kernel import Kernel, share_loads, unjoin
from synthesis.plan import Plan, Planner
from synthesis.triton import columns
from synthesis.triton.kernel import TritonKernel, join_kernels, write_kernel
from synthesis.triton.parts import split
from synthesis.triton.prelude import prelude
from synthesis.triton.segments import write_segments

# The first values were the best on average over the kernels recorded on an H200 (bench/search/landscapes).
# TILE: least elements of a program that holds whole rows. ELEMENTS: elements of a thread. MAX_ROW: longest row that is
# held in registers. BLOCK, STAGES: of streamed rows, and of tiles.
HELD: dict[str, list[Any]] = {"TILE": [2048, 1024, 512, 4096], "ELEMENTS": [32, 16, 8, 64]}
STREAMED: dict[str, list[Any]] = {
    "BLOCK": [4096, 1024, 2048, 8192],
    "ELEMENTS": [16, 8, 32, 64],
    "STAGES": [3, 2, 1, 4],
}
EITHER: dict[str, list[Any]] = {  # short rows are held, long ones streamed
    "TILE": [1024, 2048, 512, 4096],
    "ELEMENTS": [16, 32, 8, 64],
    "MAX_ROW": [16384, 8192, 32768],
}
LOOPED: dict[str, list[Any]] = {  # rows held one after the other by programs that stay
    "TILE": [2048, 4096, 1024],
    "ELEMENTS": [32, 16, 8, 64],
    "RESIDENT": [4, 2, 1, 8],  # programs of a multiprocessor, at most
    "STAGES": [2, 3, 1],
}
TILED: dict[str, list[Any]] = {
    "BLOCK": [1024, 512, 2048, 4096, 8192],
    "ELEMENTS": [8, 16, 4, 32],
    "REGISTERS": [0, 32, 64],  # at most, of a thread; 0 leaves it to the compiler
}
EVICT, EVICT_OF_TILES = ["", "evict_first", "evict_last"], ["evict_first", "", "evict_last"]

INDEX = '''
def _index(arguments):
    """The type of positions: 32 bits where every tensor is small enough."""
    large = any(isinstance(a, torch.Tensor) and a.numel() >= 2**31 for a in arguments)
    return tl.int64 if large else tl.int32
'''
LAUNCH = {
    "segmented": '''
def _segmented(kernel, rows, segments, n, run, *arguments):
    """Whole rows of segments in the registers of one program."""
    parts, block = triton.next_power_of_2(segments), triton.next_power_of_2(n)
    together = min(max(1, CONFIG["TILE"] // (parts * block)), triton.next_power_of_2(rows))
    warps = max(1, min(32, together * parts * block // (32 * CONFIG["ELEMENTS"])))
    grid = (triton.cdiv(rows, together),)
    options = {"EVICT": CONFIG["EVICT"], "INDEX": _index(arguments), "num_warps": warps}
    kernel[grid](*arguments, ROWS=together, SEGMENTS=parts, BLOCK=block, EVEN=run % together == 0, **options)
''',
    "held": '''
def _held(kernel, rows, n, run, *arguments):
    """Whole rows in the registers of one program; short rows several at a time. Where multiprocessors are idle, a row
    gets a program of its own, and more threads."""
    block = triton.next_power_of_2(n)
    together = min(max(1, CONFIG["TILE"] // block), triton.next_power_of_2(rows))
    few = triton.cdiv(rows, together) < _processors(arguments[0].device)
    together = 1 if few else together
    warps = max(1, min(32, together * block // (32 * CONFIG["ELEMENTS"])))
    warps = max(warps, min(8, block // 128)) if few else warps
    grid = (triton.cdiv(rows, together),)
    options = {"EVICT": CONFIG["EVICT"], "INDEX": _index(arguments), "num_warps": warps}
    options |= {"EVEN": run % together == 0, "WHOLE": n == block}
    kernel[grid](*arguments, ROWS=together, BLOCK=block, **options)
''',
    "looped": '''
def _looped(kernel, rows, n, run, *arguments):
    """As many programs as may be resident; each holds whole rows, one after the other, and loads the next meanwhile."""
    block = triton.next_power_of_2(n)
    together = min(max(1, CONFIG["TILE"] // block), triton.next_power_of_2(rows))
    warps = max(1, min(32, together * block // (32 * CONFIG["ELEMENTS"])))
    resident = max(1, min(CONFIG["RESIDENT"], 64 // warps, 200000 // (together * block * 2 * CONFIG["STAGES"])))
    grid = (min(triton.cdiv(rows, together), resident * _processors(arguments[0].device)),)
    options = {"EVICT": CONFIG["EVICT"], "INDEX": _index(arguments), "STAGES": CONFIG["STAGES"], "num_warps": warps}
    options |= {"EVEN": run % together == 0, "WHOLE": n == block}
    kernel[grid](*arguments, ROWS=together, BLOCK=block, **options)
''',
    "streamed": '''
def _streamed(kernel, rows, n, run, *arguments):
    """One row a program, block after block."""
    block = min(CONFIG["BLOCK"], triton.next_power_of_2(n))
    warps = max(1, min(32, block // (32 * CONFIG["ELEMENTS"])))
    options = {"EVICT": CONFIG["EVICT"], "INDEX": _index(arguments), "STAGES": CONFIG["STAGES"], "num_warps": warps}
    kernel[(rows,)](*arguments, ROWS=1, BLOCK=block, EVEN=True, WHOLE=n % block == 0, **options)
''',
    "tiled": '''
def _tiled(kernel, parts, *arguments):
    """BLOCK elements a program: part of a row, or several short rows. Independent parts share one launch."""
    constants, ends, warps, total = {}, [], 1, 0
    for number, (rows, n, run) in enumerate(parts):
        block = min(CONFIG["BLOCK"], triton.next_power_of_2(n))
        together = min(max(1, CONFIG["BLOCK"] // block), triton.next_power_of_2(rows))
        warps = max(warps, min(32, together * block // (32 * CONFIG["ELEMENTS"])))
        total += triton.cdiv(rows, together) * triton.cdiv(n, block)
        suffix = f"_{number}" if len(parts) > 1 else ""
        constants |= {f"ROWS{suffix}": together, f"BLOCK{suffix}": block}
        constants |= {f"EVEN{suffix}": run % together == 0, f"WHOLE{suffix}": n % block == 0}
        ends.append(total)
    options = {"EVICT": CONFIG["EVICT"], "INDEX": _index(arguments), "num_warps": warps}
    if CONFIG["REGISTERS"]:
        options["maxnreg"] = CONFIG["REGISTERS"]
    kernel[(total,)](*arguments, *ends[:-1], **constants, **options)
''',
}
LONGEST_HELD = 32768
PROCESSORS = """
_PROCESSORS = {}


def _processors(device):
    if device not in _PROCESSORS:
        cuda = device.type == "cuda"
        _PROCESSORS[device] = torch.cuda.get_device_properties(device).multi_processor_count if cuda else 2
    return _PROCESSORS[device]
"""


TYPES = """
_TYPES = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}
"""


def write_module(plan: Plan, planner: Planner, *, modes: Sequence[str], title: str, across: bool = False) -> str:
    """Write a Triton Candidate at the first value of each Tunable. Raise Unsupported.

    `modes` lists how rows with reductions are read: ("held",), ("streamed",), or both: held up to MAX_ROW. With
    `across`, those that lie across memory are read in strips of neighbours.
    """
    program = plan.program
    host = Host(program, planner)
    kernels: list[TritonKernel] = []
    blocks: list[Code] = []
    for is_kernel, steps in itertools.groupby(plan.steps, lambda s: isinstance(s, Kernel) and not _reduces(s)):
        if is_kernel:
            kernels += _launch_tiles(host, [s for s in steps if isinstance(s, Kernel)])
            continue
        for step in steps:
            if across and isinstance(step, Kernel) and (lane := columns.lane_of(step)) is not None:
                kernels += _launch_columns(host, step, lane)
            else:
                _write_step(host, step, modes, kernels, blocks)
    host.results()
    return _render(program, plan, host, kernels, blocks, title)


def _write_step(
    host: Host, step: Kernel | Node, modes: Sequence[str], kernels: list[TritonKernel], blocks: list[Code]
) -> None:
    if isinstance(step, Kernel):
        kernels += _launch_rows(host, step, modes)
    elif step.fn == BLOCK:
        blocks.append(step.data.write(host, step))
    else:
        host.call(step)


def _reduces(kernel: Kernel) -> bool:
    return any(e.op == "reduce" for e in kernel.exprs())


def _exact(kernel: Kernel) -> bool:
    """Return whether results have 32 bits. The scales of quantised rows do, but what they scale has eight."""
    quantised = any(s.node.dtype in QUANTISED for s in kernel.stores)
    return any(s.node.dtype in ("float32", "mixed") and (s.full or not quantised) for s in kernel.stores)


def _memory(host: Host, written: TritonKernel) -> list[str]:
    """Write what a kernel reads and writes into memory, and return its names."""
    host.used_symbols |= set(written.sizes)
    return [host.contiguous(node) for node in written.reads] + [
        host.allocate(node, host.device()) for node in written.writes
    ]


def _launch_tiles(host: Host, steps: Sequence[Kernel]) -> list[TritonKernel]:
    """Write element-wise kernels that follow each other and do not need each other: one launch."""
    kernels = [write_kernel(share_loads(unjoin(step)), "tiled", exact=_exact(step)) for step in steps]
    if len({id(n) for k in kernels for n in k.writes} & {id(n) for k in kernels for n in k.reads}):
        return [k for step in steps for k in _launch_tiles(host, [step])]
    names = {p: a for k in kernels for p, a in zip(k.pointers, _memory(host, k), strict=True)}
    names |= {size: size for k in kernels for size in k.sizes}
    parts = ", ".join(f"({host.size(k.rows)}, {host.size(k.length)}, {host.size(k.run)})" for k in kernels)
    kernel = kernels[0] if len(kernels) == 1 else join_kernels(kernels)
    host.lines.append(
        f"_tiled({kernel.name}, [{parts}], {', '.join(names[p] for p in (*kernel.pointers, *kernel.sizes))})"
    )
    return [kernel]


def _launch_rows(host: Host, kernel: Kernel, modes: Sequence[str]) -> list[TritonKernel]:
    if kernel.segments is not None:
        one = write_segments(kernel, exact=_exact(kernel))
        arguments = ", ".join([*_memory(host, one), *one.sizes])
        sizes = ", ".join(host.size(size) for size in (one.rows, kernel.segments, kernel.length, one.run))
        host.lines.append(f"_segmented({one.name}, {sizes}, {arguments})")
        return [one]
    written = [write_kernel(kernel, mode, exact=_exact(kernel)) for mode in modes]
    arguments = ", ".join([*_memory(host, written[0]), *written[0].sizes])
    rows, length = host.size(written[0].rows), host.size(written[0].length)
    run = host.size(written[0].run)
    calls = [f"_{w.mode}({w.name}, {rows}, {length}, {run}, {arguments})" for w in written]
    if len(calls) == 2:
        host.lines += [f'if {length} <= CONFIG["MAX_ROW"]:', f"    {calls[0]}", "else:", f"    {calls[1]}"]
    else:
        host.lines += calls
    return written


def _launch_columns(host: Host, kernel: Kernel, lane: str, mode: str = "") -> list[TritonKernel]:
    """Write a kernel whose rows lie across memory: held up to MAX_COLUMN, unless one pass over them is enough."""
    parts = split(kernel) if not mode else None
    if parts is not None:
        own, joined = parts
        return _launch_columns(host, own, lane, "columns_parts") + _launch_columns(
            host, joined, lane, "columns_streamed"
        )
    modes = [mode] if mode else ["columns", "columns_streamed"] if kernel.passes > 1 else ["columns_streamed"]
    written = [write_kernel(kernel, mode, exact=_exact(kernel), lane=lane) for mode in modes]
    arguments = ", ".join([*_memory(host, written[0]), *written[0].sizes])
    sizes = (columns.outer_of(kernel, lane), columns.width_of(kernel, lane), kernel.length)
    outer, width, length = (host.size(size) for size in sizes)
    calls = [f"_{w.mode}({w.name}, {outer}, {width}, {length}, {arguments})" for w in written]
    if len(calls) == 2:
        host.lines += [f'if {length} <= CONFIG["MAX_COLUMN"]:', f"    {calls[0]}", "else:", f"    {calls[1]}"]
    else:
        host.lines += calls
    return written


def _tunables(kernels: Sequence[TritonKernel]) -> dict[str, list[Any]]:
    modes = {k.mode for k in kernels}
    found: dict[str, list[Any]] = {}
    for mode, values in (
        ("segmented", HELD),
        ("held", HELD),
        ("looped", LOOPED),
        ("streamed", STREAMED),
        ("tiled", TILED),
        ("columns", columns.HELD),
        ("columns_streamed", columns.STREAMED),
        ("columns_parts", columns.STREAMED),
    ):
        if mode in modes:
            found |= {name: list(v) for name, v in values.items() if name not in found}
    if {"held", "streamed"} <= modes:
        found |= {name: list(v) for name, v in EITHER.items()}
    return found | ({"EVICT": list(EVICT_OF_TILES if modes == {"tiled"} else EVICT)} if kernels else {})


def _render(
    program: Program, plan: Plan, host: Host, kernels: list[TritonKernel], blocks: list[Code], title: str
) -> str:
    model, needed = model_class(program, host)
    tunables: dict[str, list[Any]] = {}
    for block in blocks:
        tunables |= {name: list(values) for name, values in block.tunables.items()}
    tunables |= _tunables(kernels)
    config: Mapping[str, Any] = {name: values[0] for name, values in tunables.items()}
    imports = ["import torch", *(["import torch.nn.functional as F"] if uses_functional(model, needed) else [])]
    imports += ["import triton", "import triton.language as tl", "from torch import nn", *needed]
    parts = [
        header(program, plan, title, timed=True),
        *imports,
        "",
        f"TUNABLES = {tunables!r}",
        f"CONFIG = {config!r}",
        "",
        "",
    ]
    pieces = set[str]().union(*(k.pieces for k in kernels), *(b.pieces for b in blocks))
    texts = list(dict.fromkeys([*(t for b in blocks for t in b.kernels), *(k.text for k in kernels)]))
    launches = [text for mode, text in (LAUNCH | columns.LAUNCH).items() if any(k.mode == mode for k in kernels)]
    launches += dict.fromkeys(text for block in blocks for text in block.launches.values())
    if any("_processors(" in launch for launch in launches):
        launches.insert(0, PROCESSORS)
    text = "\n".join(parts) + "\n" + prelude(pieces) + "\n\n\n".join(texts) + "\n\n"
    text += (TYPES if blocks else "") + INDEX + "\n" + "\n".join(launches)
    return f"{text}\n\n{model}\n"
