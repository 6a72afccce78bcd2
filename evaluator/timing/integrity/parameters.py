"""Check that timed calls leave parameters as they are loaded.

A kernel could prepare its weights in place once it has seen them often enough: it saves that work in every later call,
and whoever saves or trains the module finds other weights.
"""

from __future__ import annotations

from evaluator.child.protocol.layout import LayoutError, dtype_name
from evaluator.correctness.buffers import changed_parameters
from evaluator.errors import ChildFault, Rejection
from evaluator.inputs import values
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import STAGE
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.rounds import Rounds
from evaluator.types import Verdict


class Parameters:
    """Rejects a suspect that has changed parameters since they were loaded, except those that the reference changes."""

    name = "parameters"

    def run(self, session: TimedSession) -> None:
        for contender in session.contenders:
            if contender.compared_in_full and contender.parameters:
                _check(session.rounds, contender)


def _check(rounds: Rounds, contender: Contender) -> None:
    loaded = contender.parameters
    names, dtypes = {name: name for name in loaded}, {name: dtype_name(value.dtype) for name, value in loaded.items()}
    try:
        changed = changed_parameters(contender.subject, loaded, names, dtypes)
    except (ChildFault, LayoutError) as fault:
        raise rounds.verifier.attribute(contender, fault) from fault
    kept = _kept_by_reference(rounds) if changed else set()
    wrong = [name for name in changed if id(loaded[name]) in kept]
    if not wrong:
        return
    where = {} if rounds.workload.held_out else {"parameter": wrong[0]}
    which = "a parameter" if rounds.workload.held_out else f"the parameter {wrong[0]}"
    reason = f"timed calls on {rounds.verifier.label} change {which}: leave parameters as they are loaded"
    raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="parameters", **where)


def _kept_by_reference(rounds: Rounds) -> set[int]:
    """Return the ids of the loaded parameters that the reference's calls have left as they were."""
    now, loaded = rounds.oracle.current_parameters(), rounds.oracle.parameters
    return {id(value) for name, value in loaded.items() if name in now and values.same_bits(now[name], value)}
