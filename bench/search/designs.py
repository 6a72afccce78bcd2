"""List the kernels of a landscape: designs of the synthesiser, edits of them as a colleague or a model makes them,
slips.

An edit changes the text of a Triton kernel: some make it faster, some slower, some wrong; only the device can tell. A
design is a base and its edits; its Configurations are listed in full.
"""

from __future__ import annotations

import ast
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.types import Candidate, DeviceKind, Language
from evolution.tunables import Scalar, apply_configuration, family_of, read_tunables
from synthesis.graph.aten import Graph
from synthesis.strategies import sequence

MOST_CONFIGURATIONS = 24
"""An edited design lists at most this many, a base twice as many: its author shortens the lists of values."""
SLIP_EVERY = 5
"""One in so many kernels is a slip."""


@dataclass(frozen=True)
class Design:
    """A source and its origin: `base` is the synthesiser's strategy, `edits` the changes since."""

    base: str
    edits: tuple[str, ...]
    source: str
    language: Language

    @property
    def family(self) -> str:
        return family_of(self.source)


@dataclass(frozen=True)
class Item:
    """One kernel to record. `origin` is the hash of the Candidate that a slip changes, `slip` its changed line."""

    source: str
    design: Design
    configuration: Mapping[str, Scalar]
    origin: str | None = None
    slip: tuple[int, str] | None = None

    @property
    def hash(self) -> str:
        return Candidate(source=self.source, language=self.design.language).hash


Edit = Callable[[str], str]
"""Gives the source unchanged where it does not apply."""


def _with_tunable(source: str, name: str, values: list[int]) -> str:
    """Add another Tunable, with its first value in force."""
    found = re.sub(r"^TUNABLES = \{", f"TUNABLES = {{'{name}': {values!r}, ", source, count=1, flags=re.MULTILINE)
    return re.sub(r"^CONFIG = \{", f"CONFIG = {{'{name}': {values[0]!r}, ", found, count=1, flags=re.MULTILINE)


def _quick(source: str) -> str:
    """Use the hardware's own exponential and logarithm."""
    found = re.sub(r"(def _exp\(x\):\n)(?:    .*\n)+", r"\1    return tl.exp(x)\n", source)
    return re.sub(r"(def _log\(x\):\n)(?:    .*\n)+", r"\1    return tl.log(x)\n", found)


def _persistent(source: str) -> str:
    """Run a few programs per multiprocessor, each with several rows or tiles."""
    parts = re.split(r"(?m)^(?=@triton\.jit|def |class )", source)
    for number, part in enumerate(parts):
        head, mark, body = part.partition("    program = tl.program_id(0).to(INDEX)\n")
        if mark:
            tiles = " * tl.cdiv(n, BLOCK)" if "    blocks = tl.cdiv" in body else ""
            body, gap, rest = body.partition("\n\n")
            inner = "".join(f"    {line}\n" if line else "\n" for line in f"{mark}{body}".rstrip("\n").split("\n"))
            inner = inner.replace("tl.program_id(0)", "index")
            loop = f"    for index in range(tl.program_id(0), tl.cdiv(row_count, ROWS){tiles}, tl.num_programs(0)):\n"
            parts[number] = head + loop + inner.rstrip("\n") + "\n" + gap + rest
    found = "".join(parts)
    found = found.replace("kernel[grid](", 'kernel[(min(grid[0], 132 * CONFIG["WAVES"]),)](')
    found = re.sub(r"kernel\[\((.*rows.*),\)\]\(", r'kernel[(min(\1, 132 * CONFIG["WAVES"]),)](', found)
    return _with_tunable(found, "WAVES", [4, 1, 2, 8])


def _even(source: str) -> str:
    """Drop masks if the sizes are multiples of the tile."""
    found = source.replace(
        "mask=inside, other=0,", "mask=None if EVEN else inside, other=None if EVEN else 0,"
    ).replace("mask=inside)", "mask=None if EVEN else inside)")
    found = found.replace("EVICT: tl.constexpr, ", "EVICT: tl.constexpr, EVEN: tl.constexpr, ")
    parts = re.split(r"(?m)^(?=def |class )", found)
    for number, part in enumerate(parts):
        rows = "together" if "together" in part else 'CONFIG["ROWS"]' if 'CONFIG["ROWS"]' in part else "1"
        whole = f'"EVEN": n % block == 0 and rows % {rows} == 0, '
        parts[number] = part.replace('options = {"EVICT"', f'options = {{{whole}"EVICT"')
    return "".join(parts)


def _warps(source: str) -> str:
    """Choose warps instead of deriving them from the elements of a thread."""
    found = re.sub(r"    warps = max\(1, min\(32, .*\n", '    warps = CONFIG["WARPS"]\n', source)
    found = re.sub(r"'ELEMENTS': (\[[^]]*\]|\d+),? ?", "", found)
    return _with_tunable(found, "WARPS", [4, 8, 16, 2])


def _together(source: str) -> str:
    """Use several rows per program also where they are streamed."""
    many = 'kernel[(triton.cdiv(rows, CONFIG["ROWS"]),)](*arguments, ROWS=CONFIG["ROWS"],'
    found = source.replace("kernel[(rows,)](*arguments, ROWS=1,", many)
    return _with_tunable(found, "ROWS", [2, 1, 4]) if found != source else source


def _registers(source: str) -> str:
    found = source.replace('"num_warps": warps}', '"num_warps": warps, "maxnreg": CONFIG["REGISTERS"]}')
    return _with_tunable(found, "REGISTERS", [128, 64, 32, 255])


def _swap(old: str, new: str) -> Edit:
    return lambda source: source.replace(old, new)


EDITS: dict[str, Edit] = {
    "quick": _quick,
    "warps": _warps,
    "together": _together,
    "persistent": _persistent,
    "even": _even,
    "registers": _registers,
    "streaming-stores": lambda s: re.sub(r"(tl\.store\(.*, mask=inside)\)", r'\1, cache_modifier=".cs")', s),
    "evict-first-stores": lambda s: re.sub(r"(tl\.store\(.*, mask=inside)\)", r'\1, eviction_policy="evict_first")', s),
    "pipelined": _swap("num_stages=STAGES):", "num_stages=STAGES + 1):"),
    "backwards": _swap("program = tl.program_id(0)", "program = (tl.num_programs(0) - 1 - tl.program_id(0))"),
    "hints": _swap("j = tl.arange(0, BLOCK)[None, :]", "j = tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)[None, :]"),
    "bypass": _swap("mask=inside, other=0, eviction", 'mask=inside, other=0, cache_modifier=".cg", eviction'),
    "double": lambda s: s.replace("to(tl.float32)\n", "to(tl.float64)\n"),
    "half": lambda s: re.sub(r"(= tl\.load\(.*\))\.to\(tl\.float32\)", r"\1", s),
    "copied": _swap(".contiguous()", ".clone()"),
    "divided": lambda s: re.sub(r"tl\.rsqrt\((\w+)\)", r"1.0 / tl.sqrt(\1)", s),
    "fenced": lambda s: re.sub(r"(    j = .*\n)", r"\1    tl.debug_barrier()\n", s) if "    for start" not in s else s,
}

DEAD_ENDS = ("double", "half", "copied", "fenced")
"""No design builds on these."""
MOST_EDITS = 5


def bases(graphs: Mapping[str, Graph], kind: DeviceKind, seed: int) -> list[Design]:
    """Return the synthesiser's designs, one for each family."""
    found: dict[str, Design] = {}
    for draft in itertools.islice(sequence(graphs, kind, seed), 400):
        found.setdefault(family_of(draft.source), Design(draft.strategy, (), draft.source, draft.language))
    return list(found.values())


def list_values(base: Design) -> Design:
    """Return a base with lists of values that can be tried in full."""
    return replace(base, source=drop_values(base.source, 2 * MOST_CONFIGURATIONS))


def designs(
    made: list[Design], reference: str, seed: int, most: int, by_hand: Sequence[Design] = ()
) -> Iterator[Design]:
    """Return bases, hand-written kernels, the reference, then a tree: each design adds one edit to an earlier one."""
    rng = random.Random(seed)
    seen: set[str] = set()
    grown = list(made)
    for design in [*map(list_values, made), *by_hand, *reference_designs(reference)][:most]:
        seen.add(design.family)
        yield design
    for _ in range(200 * most):
        if len(seen) >= most:
            return
        parent, name = rng.choice(grown), rng.choice(list(EDITS))
        root = next(base for base in made if base.base == parent.base)
        design = apply_edits(root, tuple(sorted({*parent.edits, name}, key=list(EDITS).index)))
        if design is not None and design.family not in seen:
            seen.add(design.family)
            if name not in DEAD_ENDS and len(design.edits) < MOST_EDITS:
                grown.append(design)
            yield design


def hand_written(problem: str) -> list[Design]:
    """Return the hand-written kernels of a problem."""
    files = sorted(Path(__file__).with_name("written").glob(f"{problem}_*.py"))
    return [Design(f"by hand: {path.stem}", (), path.read_text(encoding="utf-8"), Language.TRITON) for path in files]


def reference_designs(reference: str) -> list[Design]:
    """Return the reference as a Candidate: as it is, and through torch.compile."""
    renamed = re.sub(r"(?m)^class Model\(", "class ModelNew(", reference)
    compiled = re.sub(r"(?m)^class Model\(", "class Plain(", reference) + (
        "\n\nclass ModelNew(Plain):\n"
        "    def __init__(self, *args):\n"
        "        super().__init__(*args)\n"
        "        self.quick = torch.compile(super().forward, dynamic=False)\n\n"
        "    def forward(self, *args):\n"
        "        return self.quick(*args)\n"
    )
    return [Design("reference", (), renamed, Language.TORCH), Design("compiled", (), compiled, Language.TORCH)]


def apply_edits(base: Design, names: tuple[str, ...]) -> Design | None:
    """Return a base with these edits, its lists of values shortened; None if an edit does not apply."""
    if base.language is not Language.TRITON:
        return None
    source = base.source
    for name in names:
        changed = EDITS[name](source)
        if changed == source:
            return None
        source = changed
    try:
        ast.parse(source)
    except SyntaxError:  # two edits of one place: an author would notice at once
        return None
    return Design(base.base, names, drop_values(source, MOST_CONFIGURATIONS), base.language)


def drop_values(source: str, most: int) -> str:
    """Drop values from the source's longest lists until there are at most so many Configurations."""
    tunables, configuration = read_tunables(source)
    lists = {name: list(values) for name, values in tunables.items()}
    while math.prod(len(values) for values in lists.values()) > most:
        name = max(lists, key=lambda n: (len(lists[n]), list(lists).index(n)))
        lists[name] = [v for v in lists[name][:-1] if v != configuration[name]][: len(lists[name]) - 2]
        lists[name].insert(0, configuration[name])
    return re.sub(r"(?m)^TUNABLES = .*$", f"TUNABLES = {lists!r}", source, count=1) if tunables else source


def items(chosen: list[Design], seed: int, slip_every: int = SLIP_EVERY, designs_every: int = 1) -> Iterator[Item]:
    """Yield every Configuration of every design.

    In every `designs_every`-th design, one in `slip_every` Configurations is followed by a slip of it.
    """
    rng = random.Random(seed)
    for place, design in enumerate(chosen):
        tunables, _ = read_tunables(design.source)
        grid = [dict(zip(tunables, values, strict=True)) for values in itertools.product(*tunables.values())]
        for number, configuration in enumerate(grid):
            source = apply_configuration(design.source, configuration) if tunables else design.source
            yield Item(source, design, configuration)
            slips = place % designs_every == 0 and number % slip_every == slip_every // 2
            if slips and design.language is not Language.TORCH:
                slipped = slip(source, rng)
                if slipped is not None:
                    origin = Item(source, design, configuration).hash
                    yield Item(patch_line(source, slipped), design, configuration, origin, slipped)


_SWAPS = {"+": "-", "-": "+", "*": "+", "<": "<=", ">": "<", "&": "|", "%": "//"}


def slip(source: str, rng: random.Random) -> tuple[int, str] | None:
    """Return one changed line of the kernels: its number from 0, and its new text. None if no line can change."""
    lines = source.split("\n")
    spots = [n for n, line in enumerate(lines) if _native(lines, n) and re.search(r"[-+*/<>&%]=?|\d", line)]
    if not spots:
        return None
    at = rng.choice(spots)
    line, draw = lines[at], rng.random()
    letters = [n for n, letter in enumerate(line) if letter in _SWAPS and n > len(line) - len(line.lstrip())]
    numbers = list(re.finditer(r"(?<![\w.])\d+(?![\w.])", line))
    if letters and draw < 0.6:
        n = rng.choice(letters)
        return at, line[:n] + _SWAPS[line[n]] + line[n + 1 :]
    if numbers and draw < 0.8:
        found = rng.choice(numbers)
        return at, line[: found.start()] + str(int(found.group()) + rng.choice((-1, 1))) + line[found.end() :]
    return at, line[: len(line) - len(line.lstrip())] + ("pass" if source.count("@triton.jit") else ";")


def _native(lines: list[str], at: int) -> bool:
    """Return true if a line belongs to a kernel's body or to its launch: indented, and no header."""
    line = lines[at]
    if not line.startswith("    ") or line.rstrip().endswith((":", "(", ",", '"""', "'''")) or '"""' in line:
        return False
    above = next((lines[n] for n in range(at, -1, -1) if lines[n] and not lines[n].startswith((" ", ")", "}"))), "")
    return not above.startswith("class ") and not above.startswith("import ")


def patch_line(source: str, change: tuple[int, str]) -> str:
    """Return the source with one line changed."""
    lines = source.split("\n")
    lines[change[0]] = change[1]
    return "\n".join(lines)
