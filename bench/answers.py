"""Record the answers of runs with models: what was asked, what came, what it cost, and what the judge said.

    python -m bench.answers --database FILE.db [--output bench/results/answers-cuda.jsonl]     from a service's database
    python -m bench.answers ARCHIVE.zip ... [--output FILE]                                      from runs' archives
    python -m bench.answers --replay FOLDER [--output FILE]         write the record's answers for the proposer `replay`

The first line of a run has its problem, device, baselines, champion, tokens, dollars and device seconds, and what the
best of its answers without feedback reached. Then comes a line for each proposal: the hash of its prompt, its plan, its
reply, its kernel, its cost and its judgements. Runs of the synthesiser alone have a first line, too: they are the
comparison. Endpoints are called `model`.

The folder of --replay gets a file for each problem, with every kernel that a model wrote. To judge them again, or those
that were never judged, with the same search around them:

    WARPWRIGHT_REPLAY_DIR=FOLDER warpwright optimize PROBLEM.py --device cuda:0 --proposer replay:NAME.jsonl
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select

from db.engine import make_engine, read_session
from db.recording import Recording, export_run, read_recording
from db.tables.core import RunRow
from evaluator.schema import from_json
from evaluator.types import BaselineReport, Evaluation, Verdict
from evolution.arms import is_free
from evolution.plans import plan_of
from evolution.types import Arm, Operator, RunStatus

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "bench" / "results" / "answers-cuda.jsonl"

Row = dict[str, Any]


def rows(recording: Recording) -> Iterator[Row]:
    """Yield the line of a run, then one for each proposal."""
    run = recording.run["run"]
    candidates = {line["id"]: line for line in recording.lines["candidates"]}
    judged = _judgements(recording)
    proposals = recording.lines["proposals"]
    first = [one for one in proposals if one["arm"]["operator"] == "create" and one["candidate_id"]]
    baseline = recording.run["baseline"] and from_json(BaselineReport, recording.run["baseline"])
    yield {
        "kind": "run",
        "run": run["id"],
        "problem": recording.run["problem"]["name"],
        "problem_hash": recording.manifest["problem_hash"],
        "proposers": [_shown(name) for name in run["config"]["proposers"]],
        "status": run["status"],
        "end_reason": run["end_reason"],
        "message": run["message"],
        "device": baseline.device.name if baseline else None,
        "torch": baseline.environment.torch if baseline else None,
        "triton": baseline.environment.triton if baseline else None,
        "baselines": _baselines(baseline) if baseline else {},
        "candidates": len(candidates),
        "answers": sum(bool(one["reply"]) for one in proposals),
        "judged": len(judged),
        "input_tokens": sum(one["input_tokens"] for one in proposals),
        "output_tokens": sum(one["output_tokens"] for one in proposals),
        "usd": round(sum(one["usd"] for one in proposals), 6),
        "device_s": round(sum(one["device_s"] for found in judged.values() for one in found), 1),
        "champion": _champion(run, candidates, judged),
        "best_judged": _best(candidates, judged, candidates),
        "best_first": _best(candidates, judged, [one["candidate_id"] for one in first]),
    }
    for one in proposals:
        yield _answer(one, candidates.get(one["candidate_id"] or ""), candidates, judged)


def _answer(
    proposal: Mapping[str, Any], candidate: Row | None, candidates: Mapping[str, Row], judged: Mapping[str, list[Row]]
) -> Row:
    return {
        "kind": "answer",
        "run": proposal["run_id"],
        "proposal": proposal["number"],
        "candidate": candidate["number"] if candidate else None,
        "candidate_hash": candidate["hash"] if candidate else None,
        "proposer": _shown(proposal["arm"]["proposer"]),
        "operator": proposal["arm"]["operator"],
        "parents": [candidates[parent]["number"] for parent in proposal["parents"] if parent in candidates],
        "configuration": proposal["hint"].get("configuration"),
        "outcome": proposal["outcome"],
        "detail": proposal["detail"].replace(f"from {proposal['arm']['proposer']}", "from model"),
        "template": proposal["prompt_template"],
        "prompt_sha256": hashlib.sha256(proposal["prompt"].encode()).hexdigest() if proposal["prompt"] else None,
        "plan": proposal.get("plan") or plan_of(proposal["reply"]),
        "reply": proposal["reply"],
        "source": candidate["source"] if candidate and proposal["reply"] else None,
        "input_tokens": proposal["input_tokens"],
        "output_tokens": proposal["output_tokens"],
        "usd": proposal["usd"],
        "judgements": judged.get(proposal["candidate_id"] or "", []),
    }


def _shown(proposer: str) -> str:
    return proposer if is_free(Arm(proposer=proposer, operator=Operator.CREATE)) else "model"


def _judgements(recording: Recording) -> dict[str, list[Row]]:
    """Return the judgements of each Candidate, in order."""
    found: dict[str, list[Row]] = {}
    for line in sorted(recording.lines["evaluations"], key=lambda one: one["ordinal"]):
        if line["evaluation"]:
            evaluation = from_json(Evaluation, line["evaluation"])
            found.setdefault(line["candidate_id"], []).append(_judgement(str(line["kind"]), evaluation))
    return found


def _judgement(kind: str, evaluation: Evaluation) -> Row:
    ratio = evaluation.speedup("fastest") if evaluation.verdict is Verdict.PASSED else None
    confirm = evaluation.evidence.get("confirm")
    return {
        "kind": kind,
        "verdict": evaluation.verdict.value,
        "stage": evaluation.stage.value,
        "reason": evaluation.reason,
        "speedup": ratio.value if ratio else None,
        "low": ratio.interval.low if ratio else None,
        "high": ratio.interval.high if ratio else None,
        "promoted": confirm.get("promoted") if isinstance(confirm, Mapping) else None,
        "device_s": round(sum(evaluation.duration_s.values()), 2),
        "workloads": {
            m.workload: {
                "us": round(m.median_us, 2),
                "baseline_us": round(min(time.median_us for time in m.baselines), 2) if m.baselines else None,
                "baseline": min(m.baselines, key=lambda time: time.median_us).mode if m.baselines else None,
            }
            for m in evaluation.measurements
        },
    }


def _baselines(report: BaselineReport) -> Row:
    found: Row = {}
    for time in report.times:
        found.setdefault(time.workload, {})[time.mode] = round(time.median_us, 2)
    return found


def _champion(run: Mapping[str, Any], candidates: Mapping[str, Row], judged: Mapping[str, list[Row]]) -> Row | None:
    """Return the champion with its newest confirmation."""
    candidate = candidates.get(run["champion_id"] or "")
    if candidate is None:
        return None
    confirmed = [one for one in judged[candidate["id"]] if one["kind"] == "confirm" and one["speedup"]]
    return {"candidate": candidate["number"], "lineage": _lineage(candidate, candidates), **_ratio(confirmed[-1])}


def _best(candidates: Mapping[str, Row], judged: Mapping[str, list[Row]], ids: Iterable[str]) -> Row | None:
    """Return the best of some Candidates by their first judgement that timed them; `of` are those that were judged."""
    found = [(id, next((one for one in judged.get(id, ()) if one["speedup"]), None)) for id in ids]
    timed = [(one, candidates[id]) for id, one in found if one is not None]
    if not timed:
        return None
    best, candidate = max(timed, key=lambda pair: pair[0]["speedup"])
    return {"candidate": candidate["number"], "of": sum(id in judged for id, _ in found), **_ratio(best)}


def _ratio(one: Row) -> Row:
    return {key: round(one[key], 4) for key in ("speedup", "low", "high")}


def _lineage(candidate: Row, candidates: Mapping[str, Row]) -> list[int]:
    """Return the numbers from the first ancestor, by first parents, to a Candidate."""
    path = [candidate["number"]]
    while candidate["parents"] and candidate["parents"][0] in candidates:
        candidate = candidates[candidate["parents"][0]]
        path.append(candidate["number"])
    return path[::-1]


def of_database(path: Path) -> Iterator[Recording]:
    """Yield every Run of a database that has Candidates and was not cancelled, oldest first."""
    engine = make_engine(f"sqlite:///{path}")
    try:
        with read_session(engine) as s:
            kept = RunRow.candidates > 0, RunRow.status != RunStatus.CANCELLED
            for run_id in s.scalars(select(RunRow.id).where(*kept).order_by(RunRow.id)).all():
                out = io.BytesIO()
                export_run(s, run_id, out)
                yield read_recording(out.getvalue())
    finally:
        engine.dispose()


def write_replays(record: Path, folder: Path) -> list[Path]:
    """Write a file for each problem with every kernel that a model wrote, in order, as the proposer `replay` reads."""
    found = [json.loads(text) for text in record.read_text(encoding="utf-8").splitlines()]
    problems = {row["run"]: row["problem"] for row in found if row["kind"] == "run"}
    files: dict[str, list[str]] = {}
    for row in found:
        if row["kind"] == "answer" and row["source"]:
            kept = {"source": row["source"], "detail": row["plan"][:200]}
            files.setdefault(problems[row["run"]], []).append(json.dumps(kept, ensure_ascii=False))
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return [folder / f"{name}.jsonl" for name in sorted(files)]


def line(row: Row) -> str:
    """Format a run for people."""
    champion, first = row["champion"], row["best_first"]
    outcome = (
        f"champion {champion['speedup']:.2f} ({champion['low']:.2f} to {champion['high']:.2f})" if champion else "none"
    )
    best = f"{first['speedup']:.2f} of {first['of']}" if first else "none"
    return (
        f"{row['problem']:20} {'+'.join(row['proposers']):12} {outcome:32} best first answer {best:12} "
        f"{row['candidates']} candidates, {row['answers']} answers, {row['usd']:.3f} $, {row['device_s']:.0f} device s"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archives", nargs="*", type=Path)
    parser.add_argument("--database", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--replay", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.replay:
        print("\n".join(map(str, write_replays(options.output, options.replay))))
        return 0
    recordings = (read_recording(path.read_bytes()) for path in options.archives)
    with options.output.open("w", encoding="utf-8") as out:
        for recording in of_database(options.database) if options.database else recordings:
            for row in rows(recording):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                if row["kind"] == "run":
                    print(line(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
