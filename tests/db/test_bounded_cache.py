"""A cache in memory stays within its bound."""

from __future__ import annotations

from db.bounded_cache import BoundedCache


def test_a_full_one_is_emptied_before_it_takes_more() -> None:
    kept: BoundedCache[int, str] = BoundedCache(2)
    kept[1] = "a"
    kept[2] = "b"
    kept[2] = "c"  # no more of them
    assert kept == {1: "a", 2: "c"}
    kept[3] = "d"
    assert kept == {3: "d"}
