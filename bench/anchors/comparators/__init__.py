"""What ours is compared with besides eager PyTorch and torch.compile: library calls, Liger-Kernel, Helion's kernels.

Each table maps the beginning of a row's name to named makers. A maker gets the reference with its parameters and
returns a call that takes the reference's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Maker = Callable[[torch.nn.Module], Callable[..., Any]]


def makers(row: str, helion: Path | None) -> dict[str, Maker]:
    """Return the comparators of a row; those of packages that are absent raise ImportError when made."""
    from bench.anchors.comparators import helion as tuned  # noqa: PLC0415  torch loads late in the parent
    from bench.anchors.comparators import library, liger  # noqa: PLC0415

    found: dict[str, Maker] = {}
    for prefix, named in (*library.CALLS.items(), *liger.CALLS.items(), *tuned.calls(helion).items()):
        if row.startswith(prefix):
            found |= named
    return found
