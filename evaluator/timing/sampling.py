"""Sample a contender's process, to see in which functions and libraries it works."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from evaluator.devices.base import RoundPlan
from evaluator.sandbox import symbols
from evaluator.sandbox.process import Place
from evaluator.screening import libraries
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import ContenderRound, compared_calls
from evaluator.timing.protocol import SamplingPlan
from evaluator.timing.rounds import Rounds

LIBRARIES = "libraries"  # among a contender's `unchecked`
_ROUNDS_VERIFIED = 4  # one in so many


def sample_functions(rounds: Rounds, contender: Contender, plan: RoundPlan, how: SamplingPlan) -> Mapping[str, int]:
    """Return how often a contender was seen in each function during a few more rounds of `plan`. They are not timed,
    and a secret part of them is verified. Empty where the device cannot tell. Note where there were too few samples.
    Raise Rejection."""
    seen, foreign, looks = Counter[str](), Counter[Place](), 0
    start = time.monotonic()
    while True:
        inputs = rounds.new_inputs(plan.calls)
        done = rounds.run(contender, inputs, plan, read=compared_calls(contender, plan.calls), watch=True)
        if not seen or rounds.secret_below(_ROUNDS_VERIFIED) == 0:
            rounds.verifier.verify(ContenderRound(contender, inputs, done))
        if "ran" not in done.diagnostics:
            return {}
        seen.update(done.diagnostics["ran"])
        foreign.update(done.diagnostics["foreign"])
        looks += done.diagnostics["looks"]
        limit_s = how.span_s if looks >= how.fewest_samples else max(how.span_s, how.late_s)
        if (
            (how.until_library and libraries.sampled_libraries(seen))
            or looks >= how.most_samples
            or time.monotonic() > start + limit_s
        ):
            break
    if how.until_library:
        seen.update(symbols.copied_places(foreign))
        few = looks < how.fewest_samples and not libraries.sampled_libraries(seen)
        why = f"only {looks} of {how.fewest_samples} samples, because others used the judge's core" if few else ""
        contender.note_unchecked(LIBRARIES, why)
    return dict(seen.most_common())
