"""Imported by the fork server: Triton, and the hash over its own files that is part of every key of its cache. Every
child would pay half a second for each. Nothing here touches a device."""

from __future__ import annotations

import contextlib

import triton  # noqa: F401

with contextlib.suppress(ImportError, OSError):  # another Triton keeps it elsewhere: then children compute it
    from triton.runtime.cache import triton_key

    triton_key()
