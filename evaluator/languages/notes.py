"""Technique notes of a language, and when a prompt shows them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Topic(StrEnum):
    """The occasion to show a note: an operation of the reference, any time, or the kernel's distance to its floor."""

    EXP = "exp"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    SKINNY = "skinny"
    """A product of few rows, which waits for its weights."""
    ATTENTION = "attention"
    """Two products with a softmax between them."""
    ALWAYS = "always"
    MEMORY = "memory"
    """Memory traffic may be the limit."""
    LATENCY = "latency"
    """A Workload takes far longer than memory traffic explains."""


@dataclass(frozen=True, slots=True)
class Note:
    """One line of advice. `flag` is a CPU instruction set without which it is left out."""

    topic: Topic
    text: str
    flag: str = ""


GPU_LATENCY = Note(
    Topic.LATENCY,
    "far from the floor at a small size it is launches and latency that cost: one kernel, few dependent steps, enough "
    "programs to fill the device (split the reduction where rows are few).",
)
