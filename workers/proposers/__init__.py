"""Who makes Proposals: models, the synthesiser, a replay, a given seed; and tuning, which asks nobody."""

from __future__ import annotations

from workers.proposers.choice import Proposers

__all__ = ["Proposers"]
