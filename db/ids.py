"""Prefixed ids with a text order by time: `run_01JD3Z8...`.

After the prefix come 26 Crockford base-32 digits: 48 bits of milliseconds, 16 bits that count within the process, 64
random bits.
"""

from __future__ import annotations

import itertools
import secrets
import time
from datetime import datetime

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_counter = itertools.count()


def new_id(prefix: str) -> str:
    """Return a new id. Ids of one process sort in the order of creation (up to 65,536 a millisecond)."""
    value = (time.time_ns() // 1_000_000) << 80 | (next(_counter) & 0xFFFF) << 64 | secrets.randbits(64)
    return f"{prefix}_{_text(value)}"


def first_id(prefix: str, moment: datetime) -> str:
    """Return the least id of a moment; every earlier id is smaller."""
    return f"{prefix}_{_text(int(moment.timestamp() * 1000) << 80)}"


def _text(value: int) -> str:
    return "".join(_DIGITS[value >> shift & 31] for shift in range(125, -5, -5))
