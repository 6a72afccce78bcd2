"""Enumerations of the API.

Written by scripts/generate_client.py from service/openapi.json: change that, not this.
"""

from __future__ import annotations

from typing import Literal

Clock = Literal["graph", "calls"]
DeviceKind = Literal["cpu", "cuda"]
Domain = Literal["declared", "general"]
EndReason = Literal[
    "budget",
    "target_reached",
    "roofline_reached",
    "stagnated",
    "no_improvement",
    "problem_refused",
    "no_proposer",
    "cancelled",
    "internal_error",
]
Family = Literal[
    "convolution",
    "attention",
    "matmul",
    "loss",
    "softmax",
    "normalisation",
    "pooling",
    "scan",
    "reduction",
    "indexing",
    "activation",
    "elementwise",
    "layout",
    "other",
]
Fault = Literal[
    "thoughts_only",
    "refused",
    "filtered",
    "tool_call",
    "empty",
    "cut_off",
    "no_code",
    "not_python",
    "bad_edits",
    "bad_slots",
    "too_long",
    "duplicate",
]
Heritage = Literal["population", "champions"]
Language = Literal["torch", "cpp", "triton", "cuda", "helion", "cutile"]
LibraryPolicy = Literal["allowed", "forbidden"]
Operator = Literal["create", "rewrite", "diff", "crossover", "repair", "tune"]
Precision = Literal["exact", "tf32", "half-accumulate", "budget"]
ProposalOutcome = Literal[
    "candidate",
    "duplicate",
    "malformed",
    "refused",
    "endpoint_error",
    "deadline",
    "exhausted",
    "out_of_budget",
    "cancelled",
]
RunKind = Literal["optimise", "judge"]
RunStatus = Literal["queued", "admitting", "running", "paused", "finished", "cancelled", "failed"]
Scope = Literal["read", "submit", "manage", "operator"]
Stage = Literal["screen", "build", "correctness", "timing", "integrity", "profile", "confirm"]
Taken = Literal["settled", "returned", "gone", "refused"]
Verdict = Literal[
    "PASSED",
    "INVALID_SUBMISSION",
    "POLICY_VIOLATION",
    "BUILD_ERROR",
    "RUNTIME_ERROR",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "INCORRECT_SHAPE",
    "INCORRECT_DTYPE",
    "INCORRECT_VALUES",
    "NONDETERMINISTIC",
    "REWARD_HACK",
    "INVALID_REFERENCE",
    "INTERNAL_ERROR",
]
