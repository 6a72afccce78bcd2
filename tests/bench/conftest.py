"""Make a small landscape for the tests of the search bench."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
from pathlib import Path

import pytest

from bench.search.landscape import Landscape, load

TUNABLES = {"A": [1, 2, 4, 8], "B": [16, 32, 64]}
SOURCE = f"TUNABLES = {TUNABLES!r}\nCONFIG = {{'A': 1, 'B': 16}}\nNAME = 'f%d'\n"


@pytest.fixture
def landscapes(tmp_path: Path) -> Path:
    """Return a folder with one small artificial landscape: four designs of twelve Configurations, a slip of each."""
    rng = random.Random(1)
    lines: list[dict[str, object]] = [{"line": "about", "problem": "made", "device": "up"}]
    for family in range(4):
        about = {"base": "b", "edits": [f"e{n}" for n in range(family)], "language": "cpp"}
        lines.append({"line": "design", "family": f"f{family}", "source": SOURCE % family, **about})
        for a, b in itertools.product(range(4), range(3)):
            log = math.log((1 + family / 4) * 0.9 ** abs(a - family) * 0.9 ** abs(b - 1) * rng.lognormvariate(0, 0.02))
            lines.append({
                "line": "kernel", "hash": f"{family}{a}{b}", "family": f"f{family}", "niche": "plain/simd/plain",
                "configuration": {"A": TUNABLES["A"][a], "B": TUNABLES["B"][b]}, "verdict": "PASSED",
                "log_speedup": log, "error": 0.01, "signature": f"s{family}{a}{b}",
            })  # fmt: skip
        lines.append({
            "line": "kernel", "hash": f"m{family}", "family": f"f{family}", "niche": "plain/simd/plain",
            "configuration": {"A": 1, "B": 16}, "verdict": "INCORRECT_VALUES", "origin": f"{family}00", "slip": [2, ""],
        })  # fmt: skip
    lines += [{"line": "again", "hash": f"{n}00", "verdict": "PASSED", "log_speedup": 9.0} for n in range(3)]
    path = tmp_path / "made.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in lines).encode()))
    return tmp_path


@pytest.fixture
def land(landscapes: Path) -> Landscape:
    return load(landscapes / "made.jsonl.gz")
