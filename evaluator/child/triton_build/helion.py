"""Import Helion in the fork server of its own children: that takes seconds. It touches CUDA where there is a GPU.

Where it does not import beside this torch, each Candidate's own import says so.
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(Exception):
    import helion
    import helion.language  # noqa: F401
