"""Measure whole runs from the POST on, with nothing known beforehand: how soon, how much, and how they end.

    python -m bench.inrun [--device cpu|cuda:0] [--seconds 60] [--problem NAME|FILE ...] [--repeats 1] [--cached]
        [--replay] [--checkout FOLDER] [--label TEXT] [--budget-s S] [--shard I/N] [--resume] [--output FILE]

Each run is a `warpwright optimize` with a data folder of its own. Its database then tells: seconds from the POST to
the first verdict and to every other milestone, candidates judged a minute of search and how they ended, the share of
the search in which judging held the device, seconds of each confirmation and its decision, seconds in all, and the
outcome with its ratio. bench/README.md says what each field means.

--problem takes names of examples/problems and paths of files; by default five examples. --replay also proposes a
model's recorded answers, NAME.jsonl of $WARPWRIGHT_REPLAY_DIR, where there are any (`bench.answers --replay`). --cached
follows each run by a second one in the same folder, where the baselines are known. --checkout runs another version's
code (a folder with its files) and --label names it in the lines, so that before and after are measured on one machine
in one go. --resume leaves out the runs that the file of results has; --shard I/N takes every N-th run from the I-th; no
run starts after --budget-s. QUICK=1: one problem, 40 seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from bench import machine
from bench.shards import of_shard
from bench.timeline import read_timeline

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = ("rmsnorm_residual", "softmax_scale_mask", "cross_entropy", "layernorm", "decode_attention")
QUICK = os.environ.get("QUICK") == "1"
SLACK_S = 420.0
"""A run may take so much longer than its budget before it is interrupted: older versions charge less to it."""
END_S = 45.0


@dataclass(frozen=True, slots=True)
class Piece:
    """One run: a problem's file, its number among the repeats, and `cached` for one in a folder with a past."""

    problem: Path
    repeat: int

    def key(self, label: str, device: str, seconds: float, *, cached: bool) -> list[Any]:
        return [label, device, seconds, self.problem.stem, self.repeat, cached]


def problem_file(name: str) -> Path:
    """Return the file of an example, or of a path. Raises SystemExit with the choices."""
    example = ROOT / "examples" / "problems" / f"{name}.py"
    if example.is_file():
        return example
    if Path(name).is_file():
        return Path(name).resolve()
    known = ", ".join(sorted(path.stem for path in example.parent.glob("*.py")))
    raise SystemExit(f"--problem {name}: neither a file nor one of the examples ({known})")


def pieces(problems: Sequence[Path], repeats: int, shard: str) -> Sequence[Piece]:
    """Return the runs of a shard "I/N", every problem once before any repeats."""
    return of_shard([Piece(one, repeat) for repeat in range(1, repeats + 1) for one in problems], shard)


def optimise(piece: Piece, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run one optimisation in a data folder and return its figures. One that does not end is interrupted."""
    command = [sys.executable, "-m", "warpwright", "optimize", str(piece.problem), "--device", options.device]
    command += ["--seconds", f"{options.seconds:g}", "--json", "--data", str(folder), "-o", str(folder / "best.py")]
    command += proposers(piece.problem.stem) if options.replay else []
    path = os.pathsep.join([str(options.checkout), *filter(None, [os.environ.get("PYTHONPATH")])])
    log, began, interrupted = folder.with_suffix(".log"), time.monotonic(), False
    with log.open("w+", encoding="utf-8") as said:
        process = subprocess.Popen(
            command, cwd=options.checkout, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL,
            stderr=said,
        )  # fmt: skip
        try:
            process.wait(options.seconds + SLACK_S)
        except subprocess.TimeoutExpired:
            interrupted = True
            process.send_signal(signal.SIGINT)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_S)
        said.seek(0)
        tail = said.read()[-600:]
    row = {"exit_code": process.returncode, "wall_s": round(time.monotonic() - began, 2), "interrupted": interrupted}
    database = folder / "warpwright.db"
    found = read_timeline(database) if database.is_file() else {}
    return {**row, **found} if found else {**row, "error": tail}


def proposers(name: str) -> list[str]:
    """Return the arguments for the synthesiser and a model's recorded answers; none where there are no answers."""
    answers = Path(os.environ.get("WARPWRIGHT_REPLAY_DIR", "."), f"{name}.jsonl")
    return ["--proposer", "synthesiser", "--proposer", f"replay:{answers.name}"] if answers.is_file() else []


def line(row: dict[str, Any]) -> str:
    """Format a row for people."""
    name = f"{row['problem']:20} {row['label']:8}{' cached' if row['cached'] else ''}"
    if "error" in row:
        return f"{name} no run: {(row['error'].strip().splitlines() or [row['exit_code']])[-1]}"
    champion = row["champion"]
    outcome = f"champion {champion['speedup']:.2f}x" if champion else f"none ({row['end_reason'] or row['status']})"
    confirmed = ", ".join(f"{one['seconds']:.0f} s" for one in row["confirmations"]) or "none"
    return (
        f"{name} {outcome:22} first verdict {_figure(row['first_verdict_s'])} s, {row['judged']} judged "
        f"({_figure(row['judged_a_minute'])} a minute), judging held {_figure(row['held']['judging'])}, "
        f"confirmations {confirmed}; {row['total_s']:.0f} s in all"
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each label, fresh and cached apart: medians, the geometric mean of the rate, champions.

    The reasons of the runs without a champion follow it.
    """
    lines = []
    for label, cached in dict.fromkeys((row["label"], row["cached"]) for row in rows):
        some = [row for row in rows if (row["label"], row["cached"]) == (label, cached) and "error" not in row]
        rates = [row["judged_a_minute"] or 0.0 for row in some]
        mean = statistics.geometric_mean(rates) if rates and min(rates) > 0 else 0.0
        confirms = [one["seconds"] for row in some for one in row["confirmations"]]
        lines.append(
            f"inrun {label}{' cached' if cached else ''}: {sum(1 for row in some if row['champion'])} champions of "
            f"{len(some)} runs; first verdict {_median([row['first_verdict_s'] for row in some])} s; {mean:.1f} judged "
            f"a minute (geometric mean, worst {min(rates, default=0.0):.1f}); judging held "
            f"{_median([row['held']['judging'] for row in some])}; a confirmation {_median(confirms)} s; "
            f"{_median([row['total_s'] for row in some])} s in all (medians)"
        )
        lines += [f"  {row['problem']}, no champion: {row['message']}" for row in some if not row["champion"]]
    return lines


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.3g}" if known else "-"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--device", default="cpu", metavar="cpu|cuda:N")
    made.add_argument("--seconds", type=float, default=40.0 if QUICK else 60.0)
    made.add_argument("--problem", action="append", metavar="NAME|FILE", help="may be given several times")
    made.add_argument("--repeats", type=int, default=1)
    made.add_argument("--cached", action="store_true", help="also a second run in the same data folder")
    made.add_argument("--replay", action="store_true", help="also a model's recorded answers")
    made.add_argument("--checkout", type=Path, default=ROOT, help="the code to run; default: this one")
    made.add_argument("--label", default="now", help="names the code in the lines")
    made.add_argument("--budget-s", type=float, default=float("inf"), help="no run starts later")
    made.add_argument("--shard", default="1/1", metavar="I/N")
    made.add_argument("--resume", action="store_true")
    made.add_argument("--output", type=Path, help="default: bench/results/inrun-DEVICE.jsonl")
    return made


def known_rows(path: Path, *, resume: bool) -> list[dict[str, Any]]:
    """Return the rows of an earlier call; a last line that was cut off is left out."""
    rows = []
    for text in path.read_text(encoding="utf-8").splitlines() if resume and path.exists() else ():
        try:
            rows.append(json.loads(text))
        except ValueError:
            continue
    return [row for row in rows if "key" in row]


def _write(file: TextIO, row: dict[str, Any]) -> None:
    file.write(json.dumps(row) + "\n")
    file.flush()


def measure(options: argparse.Namespace, file: TextIO, rows: list[dict[str, Any]], todo: Sequence[Piece]) -> None:
    """Run what is not among `rows` yet, and append it there and to the file."""
    done = {json.dumps(row["key"]) for row in rows}
    end = time.monotonic() + options.budget_s
    for piece in todo:
        turns = [False, True] if options.cached else [False]
        keys = [piece.key(options.label, options.device, options.seconds, cached=cached) for cached in turns]
        if all(json.dumps(key) in done for key in keys) or time.monotonic() > end:
            continue
        with tempfile.TemporaryDirectory(prefix="warpwright-inrun-", ignore_cleanup_errors=True) as folder:
            for cached, key in zip(turns, keys, strict=True):
                found = optimise(piece, options, Path(folder) / "data")
                row = {"key": key, "label": options.label, "problem": piece.problem.stem, "cached": cached, **found}
                rows.append(row)
                _write(file, row)
                print(line(row), flush=True)


def main() -> int:
    options = _parser().parse_args()
    options.checkout = options.checkout.resolve()
    names = options.problem or (PROBLEMS[:1] if QUICK else PROBLEMS)
    todo = pieces([problem_file(name) for name in names], options.repeats, options.shard)
    path = options.output or ROOT / "bench" / "results" / f"inrun-{options.device.partition(':')[0]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = known_rows(path, resume=options.resume)
    with path.open("a" if options.resume else "w", encoding="utf-8") as file:
        _write(file, {"seen_on": machine.describe(), "command": " ".join(sys.argv[1:])})
        measure(options, file, rows, todo)
    for text in summary(rows):
        print(text)
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
