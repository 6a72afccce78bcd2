"""Files on which the judge is known to be wrong, and why. To be emptied."""

from __future__ import annotations

OPEN: dict[str, str] = {}
