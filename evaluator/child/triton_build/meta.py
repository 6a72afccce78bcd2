"""Import what torch loads at the first operation on meta tensors, in the fork server of children that build.

Recipes and `forward` run on such tensors there, and torch imports its compiler's front end for some of the operations.
That takes a second.
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(Exception):  # then the operation itself says why
    import torch._dynamo  # noqa: F401
