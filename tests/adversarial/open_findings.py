"""Files on which the judge is known to be wrong, and why. To be emptied."""

from __future__ import annotations

OPEN: dict[str, str] = {
    "own_loop_in_cpp": "a loop of its own that calls native code without Python is taken to need what a call of nothing"
    " needs, but not what the Python of its forward would have needed: 5 us a call, 3.8x where 1.9x is true",
    "cuda_third_of_later_replays": "a captured graph is replayed on the same inputs, and first replays may take half as"
    " long again as later ones: 3.6x where 2.9x is true",
}
