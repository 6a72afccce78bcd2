"""`warpwright optimize`: post the problem and a run, follow the run, and download the kernel."""

from __future__ import annotations

import math
import os
import shlex
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.api import Client
from warpwright.api.boards import Model
from warpwright.api.searching import Run
from warpwright.api.words import Domain
from warpwright.cli import tables
from warpwright.cli.console import err, out, print_json, say
from warpwright.cli.device import kind_of
from warpwright.cli.files import check_output, read_source, write_bytes
from warpwright.cli.problems import choose, read_sizes
from warpwright.cli.progress import ProgressDisplay
from warpwright.cli.readiness import Examination, check_threads
from warpwright.cli.sessions import Session, open_session
from warpwright.cli.summary import Summary, summarise
from warpwright.errors import BadUsage, ExitCode, Interrupted, Refused, WarpwrightError

DEFAULT_SECONDS = 120.0
DEFAULT_PORT = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command. Without any limit the run gets DEFAULT_SECONDS."""

    problem: str
    script: Path | None = None
    device: str
    candidates: int | None = None
    seconds: float | None = None
    usd: float | None = None
    in_flight: int | None = None
    proposers: Sequence[str] = ()
    seeds: Sequence[Path] = ()
    domain: Domain | None = None
    sizes: Sequence[str] = ()
    threads: str | None = None
    server: str | None = None
    data: Path | None = None
    output: Path | None = None
    json: bool = False

    def budget(self) -> dict[str, float]:
        """Return the limits by the API's names. Raises BadUsage for one that is not positive."""
        given = {"candidates": self.candidates, "seconds": self.seconds, "usd": self.usd}
        limits = {name: value for name, value in given.items() if value is not None}
        for name, value in limits.items():
            if not 0 < value < math.inf:
                raise BadUsage(f"--{name} must be a number above 0, not {value:g}")
        return {"wall_s" if name == "seconds" else name: value for name, value in limits.items()} or {
            "wall_s": DEFAULT_SECONDS
        }

    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if self.proposers:
            config["proposers"] = list(self.proposers)
        if self.in_flight is not None:
            config["in_flight"] = self.in_flight
        if self.seeds:
            config["seed_sources"] = [read_source(path) for path in self.seeds]
        return config

    def output_path(self, name: str) -> Path:
        return self.output or Path(f"best_{name}.py")


def optimize(options: Options) -> ExitCode:
    """Optimise a problem from end to end and return the exit code. Raises WarpwrightError."""
    chosen, config, budget = choose(options.problem, options.script), options.config(), options.budget()
    sizes = [read_sizes(text) for text in options.sizes]
    kind = kind_of(options.device)
    if options.threads and options.server:
        raise BadUsage("--threads is for this machine: a service's workers have WARPWRIGHT_CPU_THREADS")
    check_threads(options.threads)
    check_output(options.output_path(chosen.name))
    if options.threads:
        os.environ["WARPWRIGHT_CPU_THREADS"] = options.threads  # for the embedded stack and its judge
    threads = os.environ.get("WARPWRIGHT_CPU_THREADS") if kind == "cpu" else None
    gpu = options.device if kind == "cuda" else None
    workers = ("control", "propose", *(("gpu", "gpu-build") if gpu else ("build", "cpu")))
    judge = Examination(options.device)
    with open_session(
        options.server, options.data, workers=workers, gpu=gpu, threads=threads or None, before_start=judge.begin
    ) as session:
        judge.wait()
        client = session.client
        problem = client.create_problem(name=chosen.name, source=chosen.source, domain=options.domain, sizes=sizes)
        _announce_models(session, options)
        wanted = {"problem_id": problem.id, "device": kind, "budget": budget, "config": config}
        run = _run_to_its_end(session, options, chosen.name, wanted)
        summary = summarise(client, run)
        saved = _download(client, summary, options.output_path(chosen.name))
    _show(options, session, summary, saved)
    return ExitCode.OK if summary.standing_champion is not None and run.status == "finished" else exit_code(run)


FREE_PROPOSERS = ("synthesiser", "seed", "replay")
"""Proposers that ask no model, by the first part of their names."""


def _announce_models(session: Session, options: Options) -> None:
    """Name the models that the run will pay, before it does."""
    asked = set(options.proposers)
    if asked and all(name.partition(":")[0] in FREE_PROPOSERS for name in asked):
        return
    models = session.client.list_models().items
    if session.joined and not models and os.environ.get("WARPWRIGHT_MODELS"):
        say(f"{session.client.url} knows no model: WARPWRIGHT_MODELS counts where that service is started")
    paid = [model for model in models if not asked or "model" in asked or model.name in asked]
    if not paid:
        return
    limit = f"at most {options.usd:g} $" if options.usd is not None else "without a limit in dollars: --usd sets one"
    say(f"this run asks {', '.join(map(_priced, paid))}, {limit}; --proposer synthesiser asks no model")


def _announce_wait(session: Session, kind: str) -> None:
    """Say that the service has no worker for the device, so that the run waits for one."""
    queue = kind if kind == "cpu" else f"gpu.{kind}"
    if session.joined and not any(worker.queue == queue for worker in session.client.list_workers().items):
        say(
            f"no worker of {session.client.url} judges on {kind}: the run waits for one, or for `warpwright bundle`; "
            "Ctrl-C cancels it"
        )


def _priced(model: Model) -> str:
    """Return a model's name and price: "one (gpt-x: 1 $ and 10 $ a million tokens in and out)"."""
    if not model.priced:
        return f"{model.name} ({model.model}, no price known)"
    if not model.usd_per_million_input and not model.usd_per_million_output:
        return f"{model.name} ({model.model}, free)"
    prices = f"{model.usd_per_million_input:g} $ and {model.usd_per_million_output:g} $"
    return f"{model.name} ({model.model}: {prices} a million tokens in and out)"


def _run_to_its_end(session: Session, options: Options, name: str, wanted: Mapping[str, Any]) -> Run:
    """Start a Run and follow it. An interrupt cancels it, so that no work continues unseen, even if the answer of its
    start did not arrive: the key finds it again."""
    client, key, run = session.client, uuid.uuid4().hex, None
    try:
        run = client.create_run(**wanted, key=key)
        say(f"{run.id}: optimising {name} on {options.device}; watch it at {client.url}/runs/{run.id}")
        _announce_wait(session, kind_of(options.device))
        with ProgressDisplay(err, seconds=wanted["budget"].get("wall_s"), quiet=options.json) as display:
            for event in client.follow(run.id, check=session.check):
                display.show(event)
    except Interrupted:
        try:
            run = run or client.create_run(**wanted, key=key)
            run = client.cancel_run(run.id)
            again = f"{own_command()} download {run.id}{_stack_option(options)}"
            kept = f"Its best kernel: {again}" if run.best_id else "It found no kernel yet."
            say(f"{run.id} is cancelled. {kept}")
        except WarpwrightError as error:
            say(f"the run could not be cancelled: {error}")
        raise
    return client.get_run(run.id)


def _download(client: Client, summary: Summary, path: Path) -> Path | None:
    """Save the champion, else the best candidate, which its file marks as unconfirmed; None if there is neither."""
    if summary.best is None and summary.standing_champion is None:
        return None
    try:
        if summary.standing_champion is None:
            return write_bytes(path, client.download_run(summary.run.id))
        standing_champion = summary.standing_champion
        return write_bytes(
            path, client.download_problem(standing_champion.problem_id, device=standing_champion.device_kind)
        )
    except Refused as error:
        say(f"nothing to download: {error}")
        return None


def _show(options: Options, session: Session, summary: Summary, saved: Path | None) -> None:
    if options.json:
        print_json({**summary.as_json(), "file": str(saved) if saved else None})
        return
    if session.stays:
        dashboard = f"{session.client.url}/runs/{summary.run.id}"
    else:
        address = f"http://127.0.0.1:{DEFAULT_PORT}/runs/{summary.run.id}"
        dashboard = f"{own_command()} serve{_data_option(options.data)}   then open {address}"
    tables.show_summary(out, summary, saved=saved, dashboard=dashboard)
    if not summary.proved and saved is not None:
        say("The file holds the best candidate: correct, but not proved faster.")
        if summary.estimate is not None:
            say("It was timed before the fastest baseline had compiled; more --seconds leave time to time it again.")


def _stack_option(options: Options) -> str:
    return f" --server {options.server}" if options.server is not None else _data_option(options.data)


def _data_option(data: Path | None) -> str:
    return f" --data {shlex.quote(str(data))}" if data is not None else ""


def own_command() -> str:
    """Return the command that started this program, for a line to paste."""
    started = Path(sys.argv[0])
    if started.name == "warpwright":
        return shlex.quote(str(started))
    return f"{shlex.quote(sys.executable)} -m warpwright"


def exit_code(run: Run) -> ExitCode:
    """Return the exit code of `optimize`: a champion is a success, for any end reason."""
    if run.champion_id is not None:
        return ExitCode.OK
    if run.end_reason in ("problem_refused", "no_proposer"):
        return ExitCode.BAD_USAGE
    if run.status == "failed":
        return ExitCode.INTERNAL
    return ExitCode.NOT_PASSED if run.status == "cancelled" else ExitCode.NO_IMPROVEMENT
