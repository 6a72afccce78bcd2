"""Part the work of a benchmark, and join the parts that `bench.gpu` left: `python -m bench.shards`.

bench/results/parts/NAME-I.jsonl of every shard become bench/results/NAME.jsonl (aa_cpu-1, aa_cpu-2, ... become
aa-cpu.jsonl), in the order of the shards; the parts are removed. The benchmark then prints its own summary of the
whole: it is run with `--resume --budget-s 0 --output` and that file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

Piece = TypeVar("Piece")
RESULTS = Path(__file__).parent / "results"
_PART = re.compile(r"(?P<name>[a-z_]+?)(?:-(?P<shard>\d+))?\.jsonl")


def of_shard(pieces: Sequence[Piece], shard: str) -> Sequence[Piece]:
    """Return every N-th piece from the I-th of a shard "I/N". Raises SystemExit for another text."""
    index, _, count = shard.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise SystemExit(f"--shard {shard}: give I/N with I from 1 to N, such as 2/4")
    return pieces[int(index) - 1 :: int(count)]


def join_parts(folder: Path) -> list[Path]:
    """Join the parts below `folder`/parts. Return the written files."""
    parts: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path in (folder / "parts").glob("*.jsonl"):
        if found := _PART.fullmatch(path.name):
            parts[found["name"]].append((int(found["shard"] or 1), path))
    written = []
    for name, some in sorted(parts.items()):
        target = folder / f"{name.replace('_', '-')}.jsonl"
        target.write_text("".join(path.read_text(encoding="utf-8") for _, path in sorted(some)), encoding="utf-8")
        written.append(target)
        for _, path in some:
            path.unlink()
            path.with_suffix(".json").unlink(missing_ok=True)
    return written


if __name__ == "__main__":
    for made in join_parts(RESULTS):
        print(made.name)
