"""A recorded landscape, and the one scripted proposer that every search is driven with."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from evolution.tunables import Scalar, key_of

DUPLICATE = 0.1
BROKEN = 0.3
TWEAK = 0.5


@dataclass(frozen=True)
class Kernel:
    """One recorded kernel. `speedup` is 0.0 where it did not pass; `sigma` the spread of one measurement's log."""

    hash: str
    family: str
    niche: str
    language: str
    verdict: str
    speedup: float
    sigma: float
    device_s: float
    origin: str | None
    tunables: Mapping[str, tuple[Scalar, ...]]
    configuration: Mapping[str, Scalar]

    @property
    def passed(self) -> bool:
        return self.verdict == "PASSED"


@dataclass
class Landscape:
    """Every kernel of one problem on one device, by hash, and where it lies."""

    name: str
    kernels: dict[str, Kernel] = field(default_factory=dict)
    families: dict[str, list[Kernel]] = field(default_factory=dict)
    broken: dict[str, list[Kernel]] = field(default_factory=dict)
    placed: dict[tuple[str, str], Kernel] = field(default_factory=dict)

    @property
    def best(self) -> float:
        return max(kernel.speedup for kernel in self.kernels.values())

    def at(self, family: str, configuration: Mapping[str, Scalar]) -> Kernel:
        """The recorded kernel of a Configuration, or the one that differs in the fewest Tunables."""
        exact = self.placed.get((family, key_of(configuration)))
        if exact is not None:
            return exact
        return min(
            self.families[family],
            key=lambda k: (sum(k.configuration[n] != v for n, v in configuration.items()), k.hash),
        )


def load(path: Path) -> Landscape:
    """Read what `bench.search.record` wrote."""
    head, *lines = (json.loads(line) for line in path.read_text().splitlines())
    found = Landscape(name=f"{head['problem']} on {head['device']['name']}")
    for line in lines:
        kernel = _kernel(line)
        found.kernels[kernel.hash] = kernel
        if kernel.origin is not None:
            found.broken.setdefault(kernel.family, []).append(kernel)
        else:
            found.families.setdefault(kernel.family, []).append(kernel)
            found.placed[kernel.family, key_of(kernel.configuration)] = kernel
    return found


def _kernel(line: Mapping[str, Any]) -> Kernel:
    spread = math.log(line["high"] / line["low"]) / 4 if line["low"] and line["high"] else 0.0
    return Kernel(
        hash=line["hash"],
        family=line["family"],
        niche=line["niche"],
        language=line["language"],
        verdict=line["verdict"],
        speedup=line["speedup"] or 0.0,
        sigma=min(0.2, max(0.005, spread)),
        device_s=line["device_s"],
        origin=line["origin"],
        tunables={name: tuple(values) for name, values in line["tunables"].items()},
        configuration=line["configuration"],
    )


@dataclass
class Proposer:
    """Draws recorded edits: what a model makes of a parent, slips and repetitions included.

    It knows the parent that the prompt shows, and nothing of how fast anything is.
    """

    land: Landscape
    rng: Random

    def propose(self, parent: Kernel | None, other: Kernel | None = None, *, repair: bool = False) -> Kernel:
        """A child of a parent (None: from the reference alone), or of two."""
        if parent is not None and repair and parent.origin in self.land.kernels:
            return self.land.kernels[parent.origin] if self.rng.random() < 0.5 else self._slip(parent.family)
        draw = self.rng.random()
        if draw < DUPLICATE and parent is not None:
            return parent
        if draw < DUPLICATE + BROKEN:
            return self._slip(parent.family if parent is not None else self._family())
        if other is not None:
            assert parent is not None
            mixed = {n: other.configuration.get(n, v) for n, v in parent.configuration.items()}
            fits = all(mixed[n] in parent.tunables.get(n, ()) for n in mixed)
            return self.land.at(parent.family, mixed) if fits else other
        if parent is not None and self.rng.random() < TWEAK:
            return self.rng.choice(self.land.families[parent.family])
        return self.rng.choice(self.land.families[self._family()])

    def _family(self) -> str:
        return self.rng.choice(sorted(self.land.families))

    def _slip(self, family: str) -> Kernel:
        slips = self.land.broken.get(family) or [k for found in self.land.broken.values() for k in found]
        return self.rng.choice(slips) if slips else self.rng.choice(self.land.families[family])


@dataclass
class Meter:
    """Counts device measurements, and knows when the true best seen comes within reach of the best known."""

    land: Landscape
    rng: Random
    within: float = 0.05
    count: int = 0
    reached_at: int | None = None

    def measure(self, kernel: Kernel, cost: int = 1) -> float:
        """What one measurement says: the recorded speedup with the recorded noise; 0.0 where it does not pass."""
        self.count += cost
        if kernel.speedup >= self.land.best / (1 + self.within) and self.reached_at is None:
            self.reached_at = self.count
        return kernel.speedup * math.exp(self.rng.gauss(0.0, kernel.sigma)) if kernel.passed else 0.0
