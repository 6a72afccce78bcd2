"""Read a recorded landscape, and drive every search with one scripted proposer."""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from bench.search.designs import patch_line
from evaluator.types import Language, Verdict
from evolution.search import MAX_FAMILIES
from evolution.state import Family
from evolution.tunables import Scalar, apply_configuration, key_of, read_tunables

DUPLICATE = 0.1
BROKEN = 0.3
MENDED = 0.5
TWEAK = 0.4
"""Of what is neither a repetition nor a slip: this share changes values, the rest the design."""
NEAR = 6
"""A change of design is one of so many recorded designs that are closest."""
REPETITIVE = 4
"""A search ends after so many times the allowed measurements in proposals."""
LEAST_RECORDED = 0.6
"""A design of which less was recorded is left out."""


@dataclass(frozen=True)
class Design:
    """The facts that all Configurations of one source share."""

    family: str
    base: str
    edits: frozenset[str]
    language: str
    source: str
    tunables: Mapping[str, tuple[Scalar, ...]]

    def distance(self, other: Design) -> int:
        """Return the number of edits apart; another base counts as two."""
        return len(self.edits ^ other.edits) + 2 * (self.base != other.base)


@dataclass(frozen=True)
class Kernel:
    """One recorded kernel. `speedup` is 0.0 if it did not pass; `sigma` the spread of one measurement's log."""

    hash: str
    family: str
    niche: str
    language: str
    verdict: str
    speedup: float
    sigma: float
    origin: str | None
    slip: tuple[int, str] | None
    tunables: Mapping[str, tuple[Scalar, ...]]
    configuration: Mapping[str, Scalar]
    signature: str

    @property
    def passed(self) -> bool:
        return self.verdict == "PASSED"


@dataclass
class Landscape:
    """Every kernel of one problem on one device, by hash, and its place."""

    name: str
    designs: dict[str, Design] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    families: dict[str, list[Kernel]] = field(default_factory=dict)
    broken: dict[str, list[Kernel]] = field(default_factory=dict)
    placed: dict[tuple[str, str], Kernel] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def best(self) -> float:
        return max(kernel.speedup for kernel in self.kernels.values())

    def at(self, family: str, configuration: Mapping[str, Scalar]) -> Kernel:
        """Return the recorded kernel of a Configuration, or the one that differs in the fewest Tunables."""
        exact = self.placed.get((family, key_of(configuration)))
        if exact is not None:
            return exact
        return min(
            self.families[family],
            key=lambda k: (sum(k.configuration.get(n) != v for n, v in configuration.items()), k.hash),
        )

    def near(self, family: str) -> list[str]:
        """Return the designs that are the fewest edits away."""
        here = self.designs[family]
        others = [f for f in self.families if f != family]
        return sorted(others, key=lambda f: (here.distance(self.designs[f]), f))[:NEAR]

    def code(self, kernel: Kernel) -> str:
        """Return the source of a kernel, as it was recorded."""
        if kernel.hash not in self.codes:
            self.codes[kernel.hash] = self._code(kernel)
        return self.codes[kernel.hash]

    def _code(self, kernel: Kernel) -> str:
        source = self.designs[kernel.family].source
        if kernel.configuration:
            source = apply_configuration(source, kernel.configuration)
        return source if kernel.slip is None else patch_line(source, kernel.slip)


def load(path: Path, least_spread: float = 0.0) -> Landscape:
    """Read the file that `bench.search.record` wrote. The reference as it is, compiled too, is no kernel.

    `least_spread` makes every measurement at least so noisy (the spread of its log), as on a machine that others use.
    """
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    plain = {line["family"] for line in lines if line["line"] == "design" and line["language"] == Language.TORCH}
    lines = [line for line in lines if line.get("family") not in plain]
    about = next(line for line in lines if line["line"] == "about")
    again: dict[str, list[float]] = {}
    for line in lines:
        if line["line"] == "again" and line.get("verdict") == "PASSED":
            again.setdefault(line["hash"], []).append(line["log_speedup"])
    kernels = [line for line in lines if line["line"] == "kernel"]
    spread = max(least_spread, _spread(kernels, again))
    found = Landscape(name=f"{about['problem']} on {about['device']}")
    for line in lines:
        if line["line"] == "design":
            tunables, _ = read_tunables(line["source"])
            found.designs[line["family"]] = Design(
                line["family"], line["base"], frozenset(line["edits"]), line["language"], line["source"], tunables
            )
    for line in kernels:
        _place(found, _kernel(line, found.designs[line["family"]], again.get(line["hash"], []), spread))
    _drop_unfinished(found)
    return found


def _spread(kernels: list[dict[str, Any]], again: Mapping[str, list[float]]) -> float:
    """Return the usual spread of one measurement's log, from those that were made twice."""
    first = {line["hash"]: line["log_speedup"] for line in kernels if line["verdict"] == "PASSED"}
    apart = [abs(log - first[hash]) / math.sqrt(2) for hash, logs in again.items() for log in logs if hash in first]
    return statistics.median(apart) / 0.6745 if len(apart) >= 10 else 0.01


def _kernel(line: Mapping[str, Any], design: Design, again: list[float], spread: float) -> Kernel:
    slip = line.get("slip")
    passed = line["verdict"] == "PASSED"
    return Kernel(
        hash=line["hash"],
        family=line["family"],
        niche=line["niche"],
        language=design.language,
        verdict=line["verdict"],
        speedup=math.exp(statistics.fmean([line["log_speedup"], *again])) if passed else 0.0,
        sigma=max(spread, line["error"]) if passed else 0.0,
        origin=line.get("origin"),
        slip=(slip[0], slip[1]) if slip else None,
        tunables=design.tunables,
        configuration=line["configuration"],
        signature=line.get("signature") or line["hash"],
    )


def _place(land: Landscape, kernel: Kernel) -> None:
    land.kernels[kernel.hash] = kernel
    if kernel.origin is not None:
        land.broken.setdefault(kernel.family, []).append(kernel)
    else:
        land.families.setdefault(kernel.family, []).append(kernel)
        land.placed[kernel.family, key_of(kernel.configuration)] = kernel


def _drop_unfinished(land: Landscape) -> None:
    """Forget designs with an incomplete recording."""
    for family, members in list(land.families.items()):
        listed = math.prod(len(values) for values in land.designs[family].tunables.values())
        if len(members) < LEAST_RECORDED * listed:
            for kernel in [*land.families.pop(family), *land.broken.pop(family, [])]:
                del land.kernels[kernel.hash]


@dataclass
class Proposer:
    """Draws recorded edits, as a model edits a parent, slips and repetitions included.

    It knows the parent that the prompt shows, and no times. `broken` and `mended` are shares: of its kernels, slips; of
    the slips that it is to repair, those that it repairs.
    """

    land: Landscape
    rng: Random
    broken: float = BROKEN
    mended: float = MENDED

    def propose(self, parent: Kernel | None, other: Kernel | None = None, *, repair: bool = False) -> Kernel:
        """Return a child of a parent (None: from the reference alone), or of two."""
        if parent is None:
            family = self._family()
            broken = self.rng.random() < self.broken
            return self._slip(family) if broken else self.rng.choice(self.land.families[family])
        if repair and parent.origin in self.land.kernels:
            return self.land.kernels[parent.origin] if self.rng.random() < self.mended else self._slip(parent.family)
        draw = self.rng.random()
        if draw < DUPLICATE:
            return parent
        if draw < DUPLICATE + self.broken:
            return self._slip(parent.family)
        if other is not None:
            return self._crossed(parent, other)
        if self.rng.random() < TWEAK and parent.tunables:
            return self._tweaked(parent)
        return self._moved(parent, self.rng.choice(self.land.near(parent.family)))

    def _tweaked(self, parent: Kernel) -> Kernel:
        """Change one or two values."""
        names = self.rng.sample(sorted(parent.tunables), min(len(parent.tunables), self.rng.randint(1, 2)))
        changed = {name: self.rng.choice(parent.tunables[name]) for name in names}
        return self.land.at(parent.family, {**parent.configuration, **changed})

    def _moved(self, parent: Kernel, family: str) -> Kernel:
        """Return another design, with the parent's values for the Tunables that it shares."""
        tunables = self.land.designs[family].tunables
        kept = {n: v for n, v in parent.configuration.items() if v in tunables.get(n, ())}
        return self.land.at(family, {**{n: values[0] for n, values in tunables.items()}, **kept})

    def _crossed(self, parent: Kernel, other: Kernel) -> Kernel:
        """Return the design that comes nearest to having the edits of both."""
        one, two = self.land.designs[parent.family], self.land.designs[other.family]
        both = one.edits | two.edits
        close = sorted(
            self.land.families,
            key=lambda f: (len(self.land.designs[f].edits ^ both) + 2 * (self.land.designs[f].base != one.base), f),
        )
        return self._moved(parent, self.rng.choice(close[:2]))

    def _family(self) -> str:
        """Return a design from the reference alone: each further edit makes a design half as likely."""
        families = sorted(self.land.families)
        return self.rng.choices(families, [0.5 ** len(self.land.designs[f].edits) for f in families])[0]

    def _slip(self, family: str) -> Kernel:
        slips = self.land.broken.get(family) or [k for found in self.land.broken.values() for k in found]
        return self.rng.choice(slips) if slips else self.rng.choice(self.land.families[family])


@dataclass
class Known:
    """The measurements of each family, as the inner search receives them."""

    land: Landscape
    fastest: dict[str, tuple[float, str]] = field(default_factory=dict)
    seen: dict[str, dict[str, tuple[Mapping[str, Scalar], float]]] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, kernel: Kernel, speedup: float) -> None:
        """Add a measured kernel, by its name as a parent."""
        if kernel.origin is None and kernel.tunables:
            self.seen.setdefault(kernel.family, {})[key_of(kernel.configuration)] = kernel.configuration, speedup
            self.fastest[kernel.family] = max(self.fastest.get(kernel.family, (0.0, "")), (speedup, name))

    def tried(self, family: str, configuration: Mapping[str, Scalar]) -> None:
        self.asked.setdefault(family, set()).add(key_of(configuration))

    def families(self) -> list[Family]:
        """Return the fastest families."""
        working = [family for family, (speedup, _) in self.fastest.items() if speedup > 0]
        return [
            Family(
                family=family,
                candidate_id=self.fastest[family][1],
                tunables=self.land.designs[family].tunables,
                seen=tuple(self.seen[family].values()),
                tried=frozenset(self.seen[family]) | frozenset(self.asked.get(family, ())),
            )
            for family in sorted(working, key=lambda f: self.fastest[f], reverse=True)[:MAX_FAMILIES]
        ]


@dataclass
class Meter:
    """Counts proposals and device measurements, and notices when the true best comes within reach of the best known.

    `trace` holds (proposals, measurements, true best) after every proposal and measurement.
    """

    land: Landscape
    rng: Random
    within: float = 0.05
    proposals: int = 0
    count: int = 0
    best: float = 0.0
    reached_at: int | None = None
    trace: list[tuple[int, int, float]] = field(default_factory=list)

    def propose(self) -> None:
        """Count a proposal, measured or not."""
        self.proposals += 1
        self.trace.append((self.proposals, self.count, self.best))

    def measure(self, kernel: Kernel, cost: int = 1) -> float:
        """Return one measurement: the recorded speedup with the recorded noise; 0.0 if it does not pass."""
        self.count += cost if kernel.verdict != Verdict.BUILD_ERROR else 0  # nothing ran on the device
        self.best = max(self.best, kernel.speedup)
        if self.best >= self.land.best / (1 + self.within) and self.reached_at is None:
            self.reached_at = self.count
        self.trace.append((self.proposals, self.count, self.best))
        return kernel.speedup * math.exp(self.rng.gauss(0.0, kernel.sigma)) if kernel.passed else 0.0

    def over(self, most: int, least: int = 0) -> bool:
        """Return True once it is within reach, or after `most` measurements; not before `least` proposals.

        A search that only repeats itself measures nothing more, and ends, too.
        """
        enough = self.reached_at is not None or self.count >= most or self.proposals >= REPETITIVE * most
        return self.proposals >= least and enough
