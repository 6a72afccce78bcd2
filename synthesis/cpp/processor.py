"""Describe the CPU that C++ kernels are written for: the threads that they may use, and the width of its vectors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Processor:
    """A CPU that kernels run on. `wide`: it has AVX-512, vectors of 16 floats and 32 registers for them."""

    threads: int = 1
    wide: bool = False

    @classmethod
    def of(cls, threads: int, flags: Collection[str]) -> Processor:
        """Return the Processor with these flags, as /proc/cpuinfo lists them."""
        return cls(threads, wide="avx512f" in flags)

    def vectors(self, *, costly: bool) -> list[int]:
        """Return numbers of floats in a vector, the first guess first: the widest where exponentials and the like take
        the time. Compilers take wider ones than the processor's apart: that takes ten times as long."""
        if not self.wide:
            return [8, 4]
        return [16, 8, 4] if costly else [8, 16, 4]

    @property
    def sums(self) -> int:
        """Vectors of sums that registers hold, with room left for the operands."""
        return 16 if self.wide else 8
