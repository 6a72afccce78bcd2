"""An expert's notes about one kernel: chosen by its limits, by its operations, and by its language."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

from evaluator.languages import adapter
from evaluator.languages.notes import Topic
from evaluator.syntax import parse
from evaluator.types import DeviceKind, Language

NEAR_FLOOR = 1.6
"""Below this ratio to the least possible time, memory limits a kernel."""
FAR_FROM_FLOOR = 5.0

_OPERATIONS = {
    Topic.EXP: r"softmax|exp\(|sigmoid|silu|gelu|tanh|erf\(|logsumexp|cross_entropy|scaled_dot_product",
    Topic.REDUCTION: r"softmax|norm|mean\(|sum\(|amax|amin|var\(|std\(|cross_entropy|argm|logsumexp",
    Topic.MATMUL: r"matmul|mm\(|nn\.Linear|F\.linear|linear\(|einsum|[\w\])] @ |conv\d?d?\(|scaled_dot_product",
}
_PRODUCT = r"(?:matmul|bmm|einsum|[\w\])] @ )"
_ATTENTION = re.compile(rf"scaled_dot_product|{_PRODUCT}.*softmax.*{_PRODUCT}", re.DOTALL)
_DISTURBED = (
    "other work disturbed the session in which the parent was timed: its times say little of what limits it. Judge by "
    "its ratios, by the other answers, and by counting its instructions and bytes."
)
ANGLES = (
    "what is read or written more than once",
    "the arithmetic an element, and whether it really runs on full vectors",
    "the chains of operations that wait for each other",
    "work that is done more than once and could be shared",
    "what a call costs besides the work itself: Python, allocation, launches, the first touch of its outputs",
)


GPU_ANGLES = (
    "what is read or written more than once",
    "the bytes in flight: programs for every multiprocessor, independent wide loads, pipelining",
    "the chain of kernels, reductions and barriers that wait for each other",
    "work that is done more than once and could be shared",
    "how each workload's work is split: few rows or short ones want another way than many or long ones",
)


def angle(number: int, over: Mapping[str, float] | None = None, kind: DeviceKind = DeviceKind.CPU) -> str:
    """Return the aspect that a prompt asks to look at first; prompts in flight together get different ones.

    `over` is the parent's time on each Workload over its least possible time. If one of several is far behind, it
    takes the place of the last angle.
    """
    angles = GPU_ANGLES if kind is DeviceKind.CUDA else ANGLES
    index = number % len(angles)
    if over and len(over) > 1 and index == len(angles) - 1:
        name = max(over, key=lambda one: over[one])
        return f"{name}, which is the furthest from its least possible time ({over[name]:.1f} times)"
    return angles[index]


def techniques(
    language: Language,
    reference: str,
    over: Mapping[str, float],
    *,
    own: bool = True,
    disturbed: bool = False,
    flags: Collection[str] = (),
    skinny: bool = False,
) -> list[str]:
    """Return the notes for a kernel.

    `over` is the time of each Workload over its least possible time, of the parent (`own`) or else of the fastest
    Baseline; `disturbed` says that other work ran too. `flags` are a CPU's vector instructions. `skinny` products have
    few operations for their bytes.
    """
    lines = [_DISTURBED] if disturbed else _positions(over) if own else _to_gain(over)
    code = _code(reference)
    topics = [topic for topic, pattern in _OPERATIONS.items() if re.search(pattern, code)] + [Topic.ALWAYS]
    if _ATTENTION.search(code):
        topics = [Topic.ATTENTION, *(topic for topic in topics if topic is not Topic.MATMUL)]
    elif skinny and Topic.MATMUL in topics:
        topics[topics.index(Topic.MATMUL)] = Topic.SKINNY
    # A Baseline of several passes says nothing about the limit of one fused kernel.
    if not over or not own or min(over.values()) < FAR_FROM_FLOOR:
        topics.append(Topic.MEMORY)
    if over and max(over.values()) >= FAR_FROM_FLOOR:
        topics.append(Topic.LATENCY)
    notes = adapter(language).notes
    return lines + [
        note.text for topic in topics for note in notes if note.topic is topic and (not note.flag or note.flag in flags)
    ]


def _code(reference: str) -> str:
    """Return a reference without comments and texts: what they mention, it need not do."""
    try:
        tree = parse(reference)
    except (SyntaxError, ValueError, RecursionError):
        return reference
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree)


def _positions(over: Mapping[str, float]) -> list[str]:
    """Return one line for each Workload of a parent, the furthest from its floor first."""
    return [_position(name, over[name]) for name in sorted(over, key=lambda one: -over[one])]


def _position(name: str, over_floor: float) -> str:
    times = f"{name}: the parent takes {over_floor:.1f} times the least possible time"
    if over_floor < NEAR_FLOOR:
        return f"{times}: memory traffic is what limits it, and little is left but to touch fewer bytes."
    if over_floor < FAR_FROM_FLOOR:
        return f"{times}: memory traffic, arithmetic and fixed costs may all count."
    return f"{times}: it is not memory that limits it, but arithmetic, latency or fixed costs."


def _to_gain(over: Mapping[str, float]) -> list[str]:
    if not over:
        return []
    gains = ", ".join(f"{times:.1f} times on {name}" for name, times in over.items())
    return [
        f"the fastest baseline takes {gains} the least possible time, a plain copy's of memory that was touched "
        "before: there is so much to gain at the most. It says nothing about what will limit one fused kernel."
    ]
