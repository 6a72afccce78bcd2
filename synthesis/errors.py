"""The synthesiser's error tree.

SynthesisError
├── TraceError      the reference could not be traced, or what the tracer wrote is not a graph
└── Unsupported     this graph, or this part of it, is beyond the synthesiser (the part then stays a library call)
"""

from __future__ import annotations


class SynthesisError(Exception):
    """The base of the synthesiser's errors."""


class TraceError(SynthesisError):
    """The reference could not be traced, or the tracer's answer is not a graph."""


class Unsupported(SynthesisError):
    """The synthesiser has no kernel for this; the message says what."""
