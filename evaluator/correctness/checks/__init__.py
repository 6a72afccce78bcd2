"""The correctness checks, in the order in which they run on each set of sizes.

A new check is a module with a class like these (see `protocol.CorrectnessCheck`) and a line here. Later checks leave
other state in the Candidate's module than earlier ones expect, so the order matters.
"""

from __future__ import annotations

from evaluator.correctness.checks.changed_buffers import ChangedBuffers
from evaluator.correctness.checks.later_changes import LaterChanges
from evaluator.correctness.checks.long_run_state import LongRunState
from evaluator.correctness.checks.many_calls import ManyCalls
from evaluator.correctness.checks.outputs import Outputs
from evaluator.correctness.checks.overwritten_output import OverwrittenOutput
from evaluator.correctness.checks.protocol import CorrectnessCheck
from evaluator.correctness.checks.reused_memory import ReusedMemory
from evaluator.correctness.checks.scaled_parameters import ScaledParameters
from evaluator.correctness.checks.size_sequence import SizeSequence
from evaluator.correctness.checks.smaller_numbers import SmallerNumbers
from evaluator.correctness.checks.state_reload import StateReload
from evaluator.correctness.checks.two_modules import TwoModules
from evaluator.correctness.checks.unchanged_parameters import UnchangedParameters

CHECKS: tuple[CorrectnessCheck, ...] = (
    ChangedBuffers(),  # buffers that forward changes equal the reference's after equal calls
    Outputs(),  # every case: values, layouts, determinism, unmodified inputs
    ManyCalls(),  # output buffers in rotation, races that are rarely lost
    OverwrittenOutput(),  # an output that the kernel returns again after the caller has overwritten it
    ReusedMemory(),  # caches keyed by address
    UnchangedParameters(),  # forward leaves parameters, and buffers that the reference leaves, as they are loaded
    StateReload(),  # caches of parameters: new ones, one changed element
    ScaledParameters(),  # assumptions about signs and sizes of parameters
    TwoModules(),  # caches that two modules share
    LongRunState(),  # buffers after many calls
    SmallerNumbers(),  # numbers among the arguments
    SizeSequence(),  # caches keyed by too little of the sizes
    LaterChanges(),  # outputs that change after they were returned
)
