"""What the judge keeps of one CUDA child while it is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator.child.protocol.chain import Link
from evaluator.devices.cuda_memory import Block, Peer, Snapshot, copies
from evaluator.types import Clock


class TimedChild:
    """State of one child that is being timed: its exported inputs, a staging copy, its outputs."""

    def __init__(self, block: Block, staging: torch.Tensor, peer: Peer, instances: int, graph: bool) -> None:
        self.block, self.staging, self.peer = block, staging, peer
        self.instances, self.graph = instances, graph
        self.staged = block.views(staging)
        self.clock = Clock.CALLS
        self.why_not = ""
        self.copies: float | None = None
        self.replies: Sequence[Any] = ()
        self.claims: Sequence[Sequence[dict[str, Any]]] = []
        self.snapshot: Snapshot
        self._checked_by: Callable[[Sequence[Any]], None] | None = None

    def fits(self, calls: int, instances: int, link: Link | None) -> bool:
        """Return whether it was prepared for such rounds."""
        return (self.block.count, self.instances) == (calls, instances) and self.block.has_chain_of(link)

    def check_replies(self, check: Callable[[Sequence[Any]], None]) -> None:
        """Check the replies of captured calls, which stay the same in every round: once for each `check`."""
        if check != self._checked_by:
            check(self.replies)
            self._checked_by = check

    def inputs(self) -> list[list[torch.Tensor]]:
        """Return copies of the child's inputs as they are now: its chain and its code write to the judge's block."""
        return copies(self.block.calls)
