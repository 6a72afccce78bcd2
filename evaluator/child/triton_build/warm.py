"""Imported by the fork server: Triton with what its first launch imports and looks for, and the hash over its own files
that is part of every key of its cache. Every child would pay for each again. Nothing here touches a device."""

from __future__ import annotations

import contextlib

import triton

with contextlib.suppress(ImportError, OSError):  # another Triton keeps it elsewhere: then children compute it
    from triton.runtime.cache import triton_key

    triton_key()

with contextlib.suppress(Exception):  # likewise; it asks the system's linker, which may be missing
    import triton.compiler.code_generator  # noqa: F401
    from triton.backends.nvidia import driver

    driver.libcuda_dirs()
