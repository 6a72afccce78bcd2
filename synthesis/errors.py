"""The synthesiser's error tree.

SynthesisError
├── SlotsError      what a model wrote into a block's slots does not fit them
├── TraceError      the reference could not be traced, or what the tracer wrote is not a graph
└── Unsupported     this graph, or this part of it, is beyond the synthesiser (the part then stays a library call)
"""

from __future__ import annotations

from typing import Any


class SynthesisError(Exception):
    """The base of the synthesiser's errors."""


class TraceError(SynthesisError):
    """The reference could not be traced, or the tracer's answer is not a graph."""


class SlotsError(SynthesisError):
    """A model's answer does not fit the slots of a block; the message says what to write instead."""


class Unsupported(SynthesisError):
    """The synthesiser has no kernel for this; the message says what."""


class LibraryCall(Unsupported):
    """An operation stays a library call, whose result has this shape by the operation's own rule."""

    def __init__(self, told: str, shape: tuple[Any, ...]) -> None:
        super().__init__(told)
        self.shape = shape
