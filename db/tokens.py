"""Secrets of 256 random bits. Only their SHA-256 is stored, which is enough for random ones."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_KEY = re.compile(r"ww_([0-9a-hjkmnp-tv-z]{10})_([0-9a-hjkmnp-tv-z]{52})\Z")


def _random(length: int) -> str:
    return "".join(secrets.choice(_DIGITS) for _ in range(length))


def new_key() -> tuple[str, str]:
    """Make an API key; return its public prefix (50 bits, to find it by) and the whole, which is shown once."""
    prefix = _random(10)
    return prefix, f"ww_{prefix}_{_random(52)}"


def new_secret() -> str:
    """Make a secret for a cookie."""
    return _random(52)


def prefix_of(key: str) -> str | None:
    """Return the prefix of a key in our format, or None."""
    match = _KEY.match(key)
    return None if match is None else match.group(1)


def digest(secret: str, *, bound_to: str = "") -> str:
    """Return the stored form of a secret: hexadecimal SHA-256. `bound_to` voids it when that other secret changes."""
    return hashlib.sha256(f"{secret}{bound_to}".encode("utf-8", "surrogateescape")).hexdigest()


def same(one: str, other: str) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())
