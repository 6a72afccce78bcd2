"""The block `rows`: one program for each row of the last dimension; a row is read in tiles.

The states are kept for each lane and merged once, after the row. Lanes past the end keep the start values.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import indent

from synthesis.slots.answer import Slots

_HEAD = """import torch
import torch.nn as nn
import triton
import triton.language as tl

TUNABLES = {"BLOCK": [512, 1024, 2048, 4096, 8192], "WARPS": [4, 8, 16]}
CONFIG = {"BLOCK": 1024, "WARPS": 4}


"""
_LAUNCH = '''def rows(*, dtype=None, {names}):
    """Launch the block over the rows of `{first}`; the output is like it, or has one element for each row."""
    {first} = {first}.contiguous()
    n = {first}.shape[-1]
    count = {first}.numel() // n if n else 0
{prepared}    out = torch.empty({shape}, dtype=dtype or {first}.dtype, device={first}.device)
    if count:
        block = min(CONFIG["BLOCK"], triton.next_power_of_2(n))
        warps = max(1, min(CONFIG["WARPS"], block // 32))
        _rows[(count,)]({given}, out, n, BLOCK=block, num_warps=warps)
    return out


'''
GUIDE = Path(__file__).with_name("rows.md").read_text(encoding="utf-8")


def write_rows(answer: Slots) -> str:
    """Return the file of a slots answer."""
    slots = "".join(f"@triton.jit\n{source}\n\n\n" for source in answer.slots.values())
    return f"{_HEAD}{slots}{_kernel(answer)}{_launch(answer)}{answer.model}\n"


def _kernel(answer: Slots) -> str:
    pointers = ", ".join(f"{name}_ptr" for name in answer.inputs)
    body = "row = tl.program_id(0).to(tl.int64)\nlane = tl.arange(0, BLOCK)\n"
    body += "".join(f"{name} = tl.load({name}_ptr + row)\n" for name in _of(answer, "row"))
    if answer.state:
        body += _reduction(answer)
    if "result" in answer.slots:
        body += f"tl.store(out_ptr + row, {_call(answer, 'result')})\n"
    else:
        written = f"out = {_call(answer, 'write')}\ntl.store(out_ptr + row * n + j, out, mask=inside)\n"
        body += _loop(_tile(answer) + written)
    return f"@triton.jit\ndef _rows({pointers}, out_ptr, n, BLOCK: tl.constexpr):\n{indent(body, '    ')}\n\n"


def _reduction(answer: Slots) -> str:
    """Write the pass that sums the states up for each lane, their merging, and the statistics."""
    text = "".join(f"{name} = tl.full([BLOCK], {_start(start)}, tl.float32)\n" for name, start in answer.state.items())
    names = [f"new_{name}" for name in answer.state]
    step = f"{', '.join(names)} = {_call(answer, 'step')}\n"
    step += "".join(f"{name} = tl.where(inside, new_{name}, {name})\n" for name in answer.state)
    text += _loop(_tile(answer) + step)
    if len(answer.state) == 1:
        [only] = answer.state
        text += f"{only} = tl.reduce({only}, 0, merge)\n"
    else:
        text += f"{', '.join(answer.state)} = tl.reduce(({', '.join(answer.state)}), 0, merge)\n"
    return text + (f"{', '.join(answer.stats)} = {_call(answer, 'finish')}\n" if answer.stats else "")


def _tile(answer: Slots) -> str:
    """Write the loads of a tile's inputs, and its values."""
    text = "j = start + lane\ninside = j < n\n"
    places = {"element": "row * n + j", "column": "j"}
    text += "".join(
        f"{name} = tl.load({name}_ptr + {places[kind]}, mask=inside, other=0).to(tl.float32)\n"
        for name, kind in answer.inputs.items()
        if kind in places
    )
    return text + f"v = {_call(answer, 'value')}\n"


def _loop(body: str) -> str:
    return "for start in range(0, n, BLOCK):\n" + indent(body, "    ")


def _call(answer: Slots, slot: str) -> str:
    return f"{slot}({', '.join(answer.taken[slot])})"


def _start(value: float) -> str:
    return repr(value) if value - value == 0 else f'float("{value}")'


def _of(answer: Slots, kind: str) -> Iterable[str]:
    return (name for name, given in answer.inputs.items() if given == kind)


def _launch(answer: Slots) -> str:
    first, *others = _of(answer, "element")
    text = f"    if any(other.shape != {first}.shape for other in ({', '.join(others)},)):\n" if others else ""
    text += '        raise ValueError("every element input has the shape of the first one")\n' if others else ""
    prepared = text + "".join(f"    {name} = {name}.contiguous()\n" for name in answer.inputs if name != first)
    return _LAUNCH.format(
        names=", ".join(answer.inputs), first=first, prepared=prepared, given=", ".join(answer.inputs),
        shape=f"{first}.shape[:-1]" if "result" in answer.slots else f"{first}.shape",
    )  # fmt: skip
