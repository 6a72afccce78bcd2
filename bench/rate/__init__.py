"""Kernels judged a minute, beside KernelBench's own evaluation."""
