"""Faults of the reference while a Candidate is checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.child.protocol.layout import LayoutError
from evaluator.errors import ChildFault, ComparatorFailed
from evaluator.inputs.sizes import Sizes


@contextmanager
def reference_must_work(sizes: Sizes) -> Iterator[None]:
    """Raise ComparatorFailed for a fault of the reference, which worked before: the Candidate is not to blame."""
    try:
        yield
    except (ChildFault, LayoutError) as fault:
        raise ComparatorFailed("the reference", f"it failed on {sizes.shown_label}: {fault}") from fault
