"""Measure a device's matrix-multiply rate: the upper roof of reports, never for refusals."""

from __future__ import annotations

import time
from functools import cache

import torch

_SIZES = {"cpu": 384, "cuda": 4096}
_TRIES = 5
_PATIENCE_S = 0.2


@cache
def matmul_gflops(device: torch.device, dtype: torch.dtype) -> float | None:
    """Return the rate of torch's product of two large square matrices, in 1e9 operations a second; the best of a few
    tries.

    It is measured once a process. None for types that are not floating-point, or that the device does not multiply.
    """
    if not dtype.is_floating_point:
        return None
    size = _SIZES[device.type]
    try:
        left = torch.ones((size, size), dtype=torch.float32, device=device).to(dtype)
        product = left @ left  # the first one loads the library, which takes longer than all that follow
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best, began = float("inf"), time.perf_counter()
        for _ in range(_TRIES):
            start = time.perf_counter()
            product = left @ left
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            best = min(best, time.perf_counter() - start)
            if time.perf_counter() - began > _PATIENCE_S:
                break
        del product
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    return 2 * size**3 / best / 1e9
