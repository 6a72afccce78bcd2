"""The synthesiser: reference graph -> tunable C++ or Triton source. No model needed.

graphs = capture(problem, DeviceKind.CPU, pool)           # traced in a cage
draft = propose(graphs, DeviceKind.CPU, number=0)          # pure: graph -> source
"""

from __future__ import annotations

from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.errors import SynthesisError, TraceError, Unsupported
from synthesis.graph.aten import Graph, read_reply
from synthesis.strategies import propose
from synthesis.tuning import vary

__all__ = [
    "Draft",
    "Graph",
    "Processor",
    "SynthesisError",
    "TraceError",
    "Unsupported",
    "propose",
    "read_reply",
    "vary",
]
