"""Files on which the judge is known to be wrong, or was not seen to be right yet, and why. To be emptied."""

from __future__ import annotations

OPEN: dict[str, str] = {}
