"""Measure the kernels judged per minute, compared with KernelBench's own evaluation."""
