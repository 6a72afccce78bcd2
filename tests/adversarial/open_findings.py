"""Files on which the judge is known to be wrong, or was not seen to be right yet, and why. To be emptied."""

from __future__ import annotations

OPEN: dict[str, str] = {
    "ends_at_the_same_address": "refused on a CPU; passed on an H100 at 0.66x, where its memo does not seem to be hit",
}
