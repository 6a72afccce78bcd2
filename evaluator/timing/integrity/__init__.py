"""Integrity checks after timing, in order. A new one is a module in this folder and a line here."""

from evaluator.timing.integrity.buffers import Buffers
from evaluator.timing.integrity.empty_calls import EmptyCalls
from evaluator.timing.integrity.graph_replays import GraphReplays
from evaluator.timing.integrity.memory_floor import MemoryFloor
from evaluator.timing.integrity.own_loops import OwnLoops
from evaluator.timing.integrity.parameters import Parameters
from evaluator.timing.integrity.repeated_integers import RepeatedIntegers
from evaluator.timing.integrity.session import IntegrityCheck
from evaluator.timing.integrity.single_calls import SingleCalls

CHECKS: tuple[IntegrityCheck, ...] = (
    GraphReplays(),  # a graph does the same work in every replay
    Parameters(),  # timed calls leave the module's parameters as they were loaded
    Buffers(),  # timed calls still change the module's buffers
    RepeatedIntegers(),  # it is as fast on integers that it has not seen
    EmptyCalls(),  # no call takes less than one of the null child
    OwnLoops(),  # our loop makes the timed calls
    SingleCalls(),  # it is as much faster when calls come one at a time
    MemoryFloor(),  # outputs are not written faster than memory can
)
HELPERS = ("session", "suspects")  # the modules here that are no check
CLOSE_LOOKS = frozenset({GraphReplays.name, OwnLoops.name, SingleCalls.name})
"""The checks that take many rounds of their own. A confirmation runs them in one secret repetition of each Workload."""
