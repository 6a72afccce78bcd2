"""Measure exported kernels: the host cost of a guarded call beside the raw kernel's, and the time of 28 imports."""
