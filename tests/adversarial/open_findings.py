"""Files on which the judge is known to be wrong, and why. To be emptied."""

from __future__ import annotations

OPEN: dict[str, str] = {
    "own_loop_in_cpp": "a loop of its own that calls native code without Python is taken to need what a call of nothing"
    " needs, but not what the Python of its forward would have needed: 5 us a call, 3.8x where 1.9x is true",
    "fold_shared_by_modules": "two modules of one file are never alive side by side",
    "shrink_keeps_the_edge": "inputs that lie on a threshold are moved off it to see how well the task is conditioned:"
    " the limit is then a whole jump",
    "sums_in_sixteen_bits": "bytes are tried as the recipe draws them: a whole row of the largest is not",
}
