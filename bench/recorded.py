"""Record a whole run with candidates that a model writes, so that it can be replayed as a test.

    python -m bench.recorded PROBLEM --base-url http://127.0.0.1:8399/v1 [--candidates 10] [--output FILE.zip]

Run `warpwright optimize` with the one endpoint as its proposer (and the tuner, which every run has), export the run's
archive, replay it in an empty database, and print how many decisions came out again. If a person or a slow model
answers at the endpoint, --patience is the longest time for one answer.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sqlalchemy import select

from db.engine import make_engine, write_session
from db.recording import export_run, read_recording
from db.replay import print_result, replay_archive
from db.tables.core import RunRow

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "workers" / "recorded"
SLACK_S = 900.0


def optimise(problem: Path, options: argparse.Namespace, folder: Path) -> str:
    """Run an optimisation, and return the run's id."""
    endpoint = {
        "name": options.name, "base_url": options.base_url, "model": options.model, "usd_per_million_input": 0,
        "usd_per_million_output": 0, "max_concurrency": options.concurrency, "timeout_s": options.patience,
        "stall_s": options.patience,
    }  # fmt: skip
    command = [sys.executable, "-m", "warpwright", "optimize", str(problem), "--device", options.device, "--json"]
    command += ["--candidates", str(options.candidates), "--proposer", options.name, "--data", str(folder)]
    command += ["--seconds", f"{options.seconds:g}", "-o", str(folder / "best.py")]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "WARPWRIGHT_MODELS": json.dumps([endpoint])},
        stdout=subprocess.PIPE,
        text=True,
        timeout=options.seconds + SLACK_S,
        check=False,
    )
    if not done.stdout.strip():
        raise SystemExit(f"the run ended with {done.returncode} and said nothing")
    run = json.loads(done.stdout)["run"]
    print(f"{problem.stem}: {run['end_reason']}: {run['message']}", flush=True)
    return str(run["id"])


def archive(database: Path, run_id: str | None = None) -> bytes:
    """Return a run of a database as an archive; by default the newest."""
    engine = make_engine(f"sqlite:///{database}")
    try:
        with write_session(engine) as s:
            newest = select(RunRow.id).order_by(RunRow.created_at.desc()).limit(1)
            out = io.BytesIO()
            export_run(s, run_id or s.scalars(newest).one(), out)
            return out.getvalue()
    finally:
        engine.dispose()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", help="a name in examples/problems, or a file")
    parser.add_argument("--base-url", default="http://127.0.0.1:8399/v1")
    parser.add_argument("--name", default="relay", help="the endpoint's name in the run")
    parser.add_argument("--model", default="relay-a")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3000.0)
    parser.add_argument("--patience", type=float, default=900.0, help="seconds for one answer")
    parser.add_argument("--concurrency", type=int, default=2, help="requests at once")
    parser.add_argument("--data", type=Path, help="a data folder to keep; one that has a finished run is only exported")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    problem = Path(options.problem)
    problem = problem if problem.is_file() else ROOT / "examples" / "problems" / f"{options.problem}.py"
    folder = options.data or Path(tempfile.mkdtemp(prefix="recorded-"))
    database = folder / "warpwright.db"
    data = archive(database, None if database.exists() else optimise(problem, options, folder))
    output = options.output or RECORDED / f"{problem.stem}.zip"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(data)
    lines = read_recording(data).lines
    asked = [line for line in lines["proposals"] if line["arm"]["proposer"] == options.name]
    passed = sum(line["verdict"] == "PASSED" for line in lines["candidates"])
    print(f"{output}: {len(asked)} answers, {len(lines['candidates'])} candidates, {passed} passed; {len(data)} bytes")
    return print_result(replay_archive(data))


if __name__ == "__main__":
    sys.exit(main())
