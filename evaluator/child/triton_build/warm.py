"""Import Triton in the fork server, with the modules and the key of its first launch, so children need not.

The key is a hash over Triton's own files, and part of every key of its cache. Nothing here touches a device.
"""

from __future__ import annotations

import contextlib

import triton

with contextlib.suppress(ImportError, OSError):  # another Triton has it elsewhere: then children compute it
    from triton.runtime.cache import triton_key

    triton_key()

with contextlib.suppress(Exception):  # likewise; it calls the system's linker, which may be missing
    import triton.compiler.code_generator  # noqa: F401
    from triton.backends.nvidia import driver

    driver.libcuda_dirs()
