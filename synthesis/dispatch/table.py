"""Write the Python of a dispatch that chooses a kernel by dtypes and shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evaluator.types import WorkloadFacts
from synthesis.errors import Unsupported

_INPUT = re.compile(r"(\w+) \[([\d, ]*)\](?: stride \[[\d, ]*\])?")

_NEAREST = '''


def _nearest(dtypes, shapes):
    """The kernel measured on the nearest sizes, as factors; _OTHERWISE for other dtypes or ranks."""
    best, least = _OTHERWISE, math.inf
    for (known, sizes), kernel in _MEASURED.items():
        if known != dtypes or [len(size) for size in sizes] != [len(shape) for shape in shapes]:
            continue
        pairs = [(a, b) for size, shape in zip(sizes, shapes) for a, b in zip(size, shape)]
        distance = sum([abs(math.log((a + 1) / (b + 1))) for a, b in pairs])
        if distance < least:
            best, least = kernel, distance
    return best
'''

_TENSORS = '''

def _tensors(value):
    """The tensors inside nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in _tensors(item)]
'''


def table(facts: Sequence[WorkloadFacts], choices: Mapping[str, int], *, otherwise: int, nested: bool) -> str:
    """Return the text of `_MEASURED`, `_CHOSEN` and `_nearest`; with `nested`, also of `_tensors`.

    `otherwise` is the kernel's number for dtypes and ranks of inputs that no Workload has.

    Raise Unsupported where the inputs of a Workload cannot be read, or where two Workloads with equal inputs have
    different kernels.
    """
    rows: dict[str, tuple[str, int]] = {}
    for fact in facts:
        layout, kernel = _layout(fact), choices[fact.workload]
        if rows.setdefault(layout, (fact.workload, kernel))[1] != kernel:
            raise Unsupported(f"{rows[layout][0]} and {fact.workload} have equal inputs, and different kernels")
    if not rows:
        raise Unsupported("nothing is known of the workloads' inputs")
    lines = [f"    {layout}: {kernel},  # {_comment(name)}" for layout, (name, kernel) in rows.items()]
    head = "# Dtypes and shapes that were measured, and the number of the fastest kernel there; -1 is the reference."
    chosen = "_CHOSEN = dict(_MEASURED)  # and those that were looked up since"
    other = f"_OTHERWISE = {otherwise}"
    return "\n".join([head, "_MEASURED = {", *lines, "}", other, chosen]) + _NEAREST + (_TENSORS if nested else "")


def choice(arguments: Sequence[str], methods: Sequence[tuple[int, str]]) -> str:
    """Return the text of `forward`.

    `arguments` are the names of its inputs, all of them tensors; without names inputs are of any kind. `methods` has
    the number and the method of each kernel; the last one takes the remaining calls.
    """
    inputs = ", ".join(arguments) or "*inputs"
    lines = [f"def forward(self, {inputs}):"]
    if arguments:
        dtypes, shapes = (_tuple([f"{name}.{what}" for name in arguments]) for what in ("dtype", "shape"))
        lines.append(f"    layout = ({dtypes}, {shapes})")
    else:
        lines.append("    tensors = _tensors(inputs)")
        lines.append("    layout = (tuple([t.dtype for t in tensors]), tuple([t.shape for t in tensors]))")
    lines += [
        "    kernel = _CHOSEN.get(layout)",
        "    if kernel is None:",
        "        kernel = _nearest(*layout)",
        "        if len(_CHOSEN) < 4096:",
        "            _CHOSEN[layout] = kernel",
    ]
    for number, method in methods[:-1]:
        lines += [f"    if kernel == {number}:", f"        return self.{method}({inputs})"]
    lines.append(f"    return self.{methods[-1][1]}({inputs})")
    return "\n".join(lines) + "\n"


def input_count(facts: Sequence[WorkloadFacts]) -> int | None:
    """Return how many tensors a call takes, None where Workloads differ."""
    counts = {len(fact.inputs) for fact in facts}
    return counts.pop() if len(counts) == 1 else None


def _layout(fact: WorkloadFacts) -> str:
    found = [_INPUT.fullmatch(text) for text in fact.inputs]
    if not found or not all(found):
        raise Unsupported(f"the inputs of {fact.workload} are not described as tensors")
    dtypes = _tuple([f"torch.{one[1]}" for one in found if one is not None])
    shapes = [[size.strip() for size in one[2].split(",") if size.strip()] for one in found if one is not None]
    return f"({dtypes}, {_tuple([_tuple(sizes) for sizes in shapes])})"


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _comment(name: str) -> str:
    return "".join(character if character.isprintable() else " " for character in name)
