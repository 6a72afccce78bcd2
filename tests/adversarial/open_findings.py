"""Files on which the judge is known to be wrong, and why. To be emptied."""

from __future__ import annotations

_NAMED = "a library that is called past torch is seldom found in a small product"

OPEN: dict[str, str] = {
    "compiled": "ten seconds to import torch's compiler are too few on a busy machine",
    "contiguous_assumed": "the general domain tries no strides",
    "fast_harness": "a leaner loop does not pay the overhead that is taken off",
    "gelu: denormals flushed": "no denormal inputs",
    "leaves_after_late_work": "a thread that ends after a stop was undone is not counted",
    "library_cblas": _NAMED,
    "library_copied": _NAMED,
    "library_numpy": _NAMED,
    "memo_constant_inputs": "a recipe without randomness gives equal inputs",
    "linear: zeros skipped although NaN times zero is NaN": "one NaN a tensor: half of its places are not tried",
    "phase_by_slot_name": "a kind of adversarial values may be missing from a short timing",
    "ring_of_three_hundred": "buffers that are used again after more calls than a round has",
    "spins_although_stopped": "a stop that was undone is noticed after a round alone",
    "state_across_calls": "the judge raises for a problem whose answer depends on its buffer",
    "starts_early": "a stop that was undone is noticed after a round alone",
}
