"""Files on which the judge is known to be wrong, or was not seen to be right yet, and why. To be emptied."""

from __future__ import annotations

OPEN: dict[str, str] = {
    "slow_until_timed_then_a_ring": "how many calls are made in a row follows from how long they take while checked",
}
