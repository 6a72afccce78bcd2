"""Blocks that models write with: they give small functions, the slots, and the block owns the rest of the file.

`expand(code)` makes the whole file of a slots answer; `GUIDE` tells a model how to write one.

- `rows`: reductions over the last dimension and what follows from them, element by element. It owns masks, 64-bit
  offsets, the loop, the merging of lanes, the launch and its Tunables.
"""

from __future__ import annotations

from synthesis.slots.answer import read_slots
from synthesis.slots.rows import GUIDE, write_rows

__all__ = ["GUIDE", "expand"]


def expand(code: str) -> str:
    """Return the file that a slots answer stands for. Raises SlotsError, which says what to write instead."""
    return write_rows(read_slots(code))
