"""Show the history of every candidate of a recorded run: its maker, its parents, and each of its judgements.

    python -m bench.lineage FILE.zip                                  a table, oldest candidate first
    python -m bench.lineage FILE.zip --source 7                      one candidate's file
    python -m bench.lineage FILE.zip --difference 6 10               the changes from one to another

A time is a median in microseconds. It is followed by the fastest baseline's time of the same session, and the ratio
with its 95 % interval. "disturbed" counts the pairs of rounds that were discarded because other work took the core, of
all timed.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from db.recording import Recording, read_recording
from evaluator.schema import from_json
from evaluator.types import Evaluation, Measurement, Ratio


def table(recording: Recording) -> list[str]:
    """Return the lines of a Markdown table, one for each judgement."""
    lines = recording.lines
    candidates = {line["id"]: line for line in lines["candidates"]}
    proposals = {line["id"]: line for line in lines["proposals"]}
    judged = [(line, from_json(Evaluation, line["evaluation"])) for line in lines["evaluations"] if line["evaluation"]]
    shown = list(dict.fromkeys(m.workload for _, evaluation in judged for m in evaluation.measurements))
    rows = [["candidate", "judging", "times the fastest baseline", *shown, "disturbed"]]
    for line, evaluation in sorted(
        judged, key=lambda pair: (candidates[pair[0]["candidate_id"]]["number"], pair[0]["ordinal"])
    ):
        candidate = candidates[line["candidate_id"]]
        made = proposals[candidate["proposal_id"]]
        parents = [candidates[parent]["number"] for parent in candidate["parents"]]
        rows.append([_made(candidate, made, parents), str(line["kind"]), *_measured(evaluation, shown)])
    head, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return [head, "|---" * len(rows[0]) + "|", *rest]


def _made(candidate: Mapping[str, Any], made: Mapping[str, Any], parents: list[int]) -> str:
    values = ", ".join(f"{key}={value}" for key, value in sorted(made["hint"].get("configuration", {}).items()))
    of = f" of {', '.join(str(number) for number in parents)}" if parents else ""
    return f"{candidate['number']}: {made['arm']['operator']}{of}" + (f" ({values})" if values else "")


def _measured(evaluation: Evaluation, shown: list[str]) -> Iterator[str]:
    if not evaluation.measurements:
        yield from (f"{evaluation.verdict.value}: {evaluation.reason}", *("" for _ in shown), "")
        return
    ratios = {one.workload: one for one in evaluation.speedups if one.against == "fastest"}
    times = {m.workload: m for m in evaluation.measurements}
    yield _ratio(ratios.get(None))
    for name in shown:
        yield f"{_against(times[name])}: {_ratio(ratios.get(name))}" if name in times else ""
    discarded, pairs = (
        sum(int(m.diagnostics.get(key, 0)) for m in times.values()) for key in ("discarded_pairs", "pairs")
    )
    yield f"{discarded} of {discarded + pairs}"


def _against(m: Measurement) -> str:
    return f"{m.median_us:.3g} against {min(time.median_us for time in m.baselines):.3g}"


def _ratio(one: Ratio | None) -> str:
    return "" if one is None else f"{one.value:.2f} ({one.interval.low:.2f} to {one.interval.high:.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--source", type=int, metavar="N")
    parser.add_argument("--difference", type=int, nargs=2, metavar="N")
    options = parser.parse_args()
    recording = read_recording(options.file.read_bytes())
    sources = {line["number"]: line["source"] for line in recording.lines["candidates"]}
    if options.source is not None:
        print(sources[options.source])
    elif options.difference:
        before, after = (sources[number].splitlines() for number in options.difference)
        print("\n".join(difflib.unified_diff(before, after, lineterm="")))
    else:
        print("\n".join(table(recording)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
