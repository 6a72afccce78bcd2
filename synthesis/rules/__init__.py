"""Rules: an aten operation -> primitive nodes. A rule that does not apply raises Unsupported (or TypeError, for
arguments that it does not take), and the operation stays a library call."""

from __future__ import annotations

from synthesis.rules import fills, losses, pointwise, pools, reductions, scans, views  # noqa: F401  they enter their rules
from synthesis.rules.registry import RULES

__all__ = ["RULES"]
