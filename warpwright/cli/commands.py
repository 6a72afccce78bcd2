"""The command line. Data goes to standard output, progress to standard error; exit codes are in `errors.ExitCode`."""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from warpwright import __version__, paths
from warpwright.api import words
from warpwright.capture import capture as run_capture
from warpwright.cli import agents, bundles, downloads, evaluator_process, keys, problems, tables
from warpwright.cli import doctor as machine
from warpwright.cli.console import out, print_json, print_json_line, print_rows, say
from warpwright.cli.device import every_worker, kind_of, read_device
from warpwright.cli.optimize import DEFAULT_PORT, DEFAULT_SECONDS, Options
from warpwright.cli.optimize import optimize as run_optimize
from warpwright.cli.options import Data, Json, Server
from warpwright.cli.readiness import check_disk, check_port, check_threads
from warpwright.cli.sessions import open_session
from warpwright.errors import BadUsage, ExitCode, Interrupted, WarpwrightError
from warpwright.formats import MOST_WORKLOADS
from warpwright.stack.data_folder import DataFolder
from warpwright.stack.supervisor import Stack

app = typer.Typer(
    name="warpwright",
    help="Turn a slow PyTorch op into a kernel that is proved correct and proved faster.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(keys.app, name="keys")


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"warpwright {__version__}", markup=False)
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
]


@app.callback()
def _options(version: Version = False) -> None:
    """Options that stand before a command."""


Device = Annotated[str | None, typer.Option(help="cpu or cuda:N. [default: cuda:0 where there is a GPU, else cpu]")]
Domain = Annotated[words.Domain | None, typer.Option(help="Inputs to support. [default: as the problem file says]")]
Size = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Another workload, with this size (several with commas). Repeatable."),
]
Threads = Annotated[
    str | None,
    typer.Option(
        metavar="N|all",
        help="CPU threads used for judging; `1,all` also judges with every core. "
        "[default: WARPWRIGHT_CPU_THREADS, or 1]",
    ),
]
Target = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A problem file (a Model and its get_inputs), a file or folder in another form (PATH#NAME names one of "
        "several), or package.module:Name.",
    ),
]
Script = Annotated[
    Path | None,
    typer.Option(help="A script that calls PROBLEM, where that is a class or function (package.module:Name)."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that were edited.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id (run_...).")]


@app.command()
def optimize(
    problem: Target,
    device: Device = None,
    candidates: Annotated[int | None, typer.Option(help="Maximum number of candidates.")] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Maximum time of the run; a confirmation that has begun ends first. "
            f"[default: {DEFAULT_SECONDS:g}, unless another limit is given]"
        ),
    ] = None,
    usd: Annotated[float | None, typer.Option(help="Maximum cost of model calls, in dollars.")] = None,
    proposer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Source of candidates: synthesiser, a model's name, or replay:NAME. Repeatable."
        ),
    ] = None,
    seed: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A kernel file to start from. Repeatable.")
    ] = None,
    in_flight: Annotated[
        int | None, typer.Option(min=1, max=256, help="Candidates in the making at once. [default: 4]")
    ] = None,
    domain: Domain = None,
    size: Size = None,
    threads: Threads = None,
    script: Script = None,
    server: Server = None,
    data: Data = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the kernel. [default: best_PROBLEM.py]")
    ] = None,
    json: Json = False,
) -> None:
    """Search for a faster kernel and save the best one as a file.

    Exits 0 with a champion that was confirmed to be faster than the fastest baseline, 4 without one.
    """
    options = Options(
        problem=problem, script=script, device=read_device(device), candidates=candidates, seconds=seconds, usd=usd,
        in_flight=in_flight, proposers=proposer or (), seeds=seed or (), domain=domain, sizes=size or (),
        threads=threads, server=server, data=data, output=output, json=json,
    )  # fmt: skip
    _end(run_optimize(options))


@app.command(short_help="Check one kernel for correctness and time it.")
def judge(
    problem: Target,
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The candidate file: a ModelNew.")],
    device: Device = None,
    domain: Domain = None,
    size: Size = None,
    threads: Threads = None,
    script: Script = None,
    json: Json = False,
) -> None:
    """Check one kernel for correctness and time it. The same as python -m evaluator judge.

    Exits 0 for PASSED, 1 for any other verdict, 2 for an invalid reference, 3 when the judge itself failed.
    """
    if read_device(device) == "cpu":
        check_threads(threads)
    with problems.as_file(problem, script) as path:
        arguments = ["judge", "--problem", str(path), "--candidate", str(candidate), "--device", read_device(device)]
        if domain:
            arguments += ["--domain", domain]
        for one in size or ():
            arguments += ["--size", one]
        if threads:
            arguments += ["--threads", threads]
        if json:
            arguments += ["--json", "-"]
        code = evaluator_process.run(arguments)
    _end(code)


@app.command("import", short_help="Write problem files from other projects' forms.")
def import_(
    what: Annotated[
        str, typer.Argument(metavar="PATH", help="A file or folder in that form (PATH#NAME names one of several).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the problem files.")] = Path("problems"),
    workloads: Annotated[
        int, typer.Option(min=1, max=100, help="Maximum number of shown workloads of a problem.")
    ] = MOST_WORKLOADS,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write problem files from another form: KernelBench, GPU MODE, FlashInfer-Trace, SOL-ExecBench, BackendBench.

    Exits 0 if all are imported, 1 if some are refused (the reasons are printed), 2 if all are. A file that is there
    and differs, since somebody edited it perhaps, is refused.
    """
    _end(problems.import_problems(what, output, workloads, overwrite=overwrite, json=json))


@app.command(
    short_help="Write the slowest parts of a script's models as problem files.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def capture(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="A script that runs the model; its arguments follow.")
    ],
    module: Annotated[
        bool, typer.Option("--module", "-m", help="SCRIPT is a module's name, as for python -m.")
    ] = False,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Arguments of the script.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the problem files.")] = Path("captured"),
    python: Annotated[str | None, typer.Option(help="The script's Python. [default: the one that runs this]")] = None,
    only: Annotated[str | None, typer.Option(help="One class or function, as package.module:Name.")] = None,
    most: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of parts.")] = 10,
    largest: Annotated[int, typer.Option(min=1, help="Maximum number of operations of a part.")] = 60,
    seconds: Annotated[float, typer.Option(min=1, help="Maximum time of the script.")] = 3600.0,
    overwrite: Overwrite = False,
) -> None:
    """Run a script, find the slowest parts of its models, and write each as a problem file with its real shapes.

    The script runs as it always does, but for torch.compile, which is left out meanwhile. Give options before the
    script. Exits 1 if nothing could be captured. Files that were edited since are left as they are.
    """
    _end(
        run_capture(
            script, arguments or (), output=output, python=python, only=only, most=most, largest=largest,
            seconds=seconds, module=module, overwrite=overwrite,
        )
    )  # fmt: skip


@app.command(short_help="Run the API, the dashboard and the workers until interrupted.")
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on. Outside loopback, API keys are required.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = DEFAULT_PORT,
    data: Data = None,
    json: Json = False,
) -> None:
    """Run the API, the dashboard and the workers on this machine until interrupted. No other service is needed."""
    folder = DataFolder((data or paths.default_data_dir()).absolute())
    with folder.locked() as acquired:
        if not acquired:
            running = folder.running()
            where = f" at {running.url}" if running else ""
            raise BadUsage(f"a stack is already running on {folder.path}{where}; use --data DIR to run a second one")
        check_disk(folder.path)
        check_port(host, port)
        with Stack(folder, workers=every_worker(), host=host, port=port, stays=True) as stack:
            if json:
                print_json_line({"url": stack.url, "data": str(folder.path)})
            else:
                out.print(f"Warpwright runs at {stack.url}", markup=False)
                if host not in ("127.0.0.1", "::1", "localhost"):
                    say(f"Other machines reach it on port {stack.port}, by the names in WARPWRIGHT_ALLOWED_HOSTS.")
                say(f"Data and logs: {folder.path}. Press Ctrl-C to stop.")
            _serve_until_interrupted(stack)


def _serve_until_interrupted(stack: Stack) -> None:
    pause = threading.Event()
    try:
        while not pause.wait(0.5):
            stack.check()
    except Interrupted:
        say("Stopping.")


@app.command(short_help="List the champion of every problem and kind of device.")
def leaderboard(server: Server = None, data: Data = None, json: Json = False) -> None:
    """List the champion of every problem on every kind of device."""
    with open_session(server, data) as session:
        rows = list(session.client.each(session.client.list_leaderboard))
    print_rows(rows, tables.leaderboard, "champions", as_json=json)


@app.command()
def runs(server: Server = None, data: Data = None, json: Json = False) -> None:
    """List all runs, newest first."""
    with open_session(server, data) as session:
        rows = list(session.client.each(session.client.list_runs))
    print_rows(rows, tables.runs, "runs", as_json=json)


@app.command(short_help="List the candidates of a run: verdicts and speedups.")
def candidates(run: RunId, server: Server = None, data: Data = None, json: Json = False) -> None:
    """List the candidates of a run, with their verdicts and speedups."""
    with open_session(server, data) as session:
        rows = list(session.client.each(session.client.list_candidates, run))
        ended = session.client.get_run(run).status in ("finished", "cancelled", "failed")
    print_rows(rows, functools.partial(tables.candidates, ended=ended), "candidates", as_json=json)


@app.command(short_help="Print the events of a run, one a line.")
def events(
    run: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new events until the run ends.")] = False,
    server: Server = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print the events of a run, one per line (with --json one JSON document per line)."""
    with open_session(server, data) as session:
        client = session.client
        for event in client.follow(run, check=session.check) if follow else client.events(run):
            if json:
                print_json_line(event)
            else:
                out.print(tables.event_line(event), markup=False, soft_wrap=True)


@app.command()
def cancel(run: RunId, server: Server = None, data: Data = None, json: Json = False) -> None:
    """Stop a run. Its results are kept."""
    with open_session(server, data) as session:
        state = session.client.cancel_run(run)
    if json:
        print_json(state)
    else:
        out.print(f"{state.id} is {state.status}", markup=False)


@app.command(short_help="Download the champion of a run or a problem.")
def download(
    what: Annotated[str, typer.Argument(metavar="RUN_OR_PROBLEM", help="A run's or a problem's id.")],
    device: Device = None,
    form: Annotated[
        downloads.Form,
        typer.Option(
            "--format",
            help="py: one self-contained Python file; package: a folder that builds a wheel; hf-kernel: a folder for "
            "Hugging Face's kernels; kernelbench, gpumode (submission.py), flashinfer, sol: a solution in that form; "
            "zip: a whole run, for a replay.",
        ),
    ] = "py",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file or a new folder. [default: standard output, a folder here]"),
    ] = None,
    server: Server = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Download the champion of a run or a problem. Without one, download the best candidate, marked as unconfirmed."""
    downloads.download(what, kind_of(read_device(device)), form, output, server=server, data=data, json=json)


@app.command(short_help="Save waiting work as a file for a machine without network access.")
def bundle(
    device: Annotated[str, typer.Option(help="The kind of device that will do the work: cuda or cpu.")] = "cuda",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of tasks.")] = 200,
    hours: Annotated[float, typer.Option(help="Hours until unanswered work returns to its queue.")] = 24.0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file. [default: BUNDLE_ID.bundle]")] = None,
    server: Server = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Save the work that waits for a device as one file, for a machine without network access.

    `python -m evaluator work FILE` does it there, and `warpwright collect` settles its answers. Exits 1 if none waits.
    """
    kind = kind_of(read_device(device))
    _end(bundles.bundle(kind, output, limit=limit, hours=hours, server=server, data=data, json=json))


@app.command(short_help="Settle the answers to bundles.")
def collect(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", help="Files of answers; with --release bundles, too.")
    ],
    release: Annotated[bool, typer.Option("--release", help="Return unanswered tasks to the queue.")] = False,
    server: Server = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Settle the answers to bundles, each exactly once: files may be cut, repeated and late."""
    _end(bundles.collect(files, release=release, server=server, data=data, json=json))


@app.command(short_help="Serve tools to a coding agent over standard input and output.")
def mcp(server: Server = None, data: Data = None) -> None:
    """Serve Warpwright's tools to a coding agent over standard input and output (MCP).

    The same tools are at /mcp of every service. Without a service, an embedded stack starts and ends with this command.
    """
    _end(agents.mcp(server, data))


@app.command(short_help="Write a skill for coding agents.")
def skill(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of skills; a folder warpwright is made in it.")
    ] = Path(".claude/skills"),
    json: Json = False,
) -> None:
    """Write a skill for coding agents: what to call, the judge's rules, and the loop. An older one is replaced."""
    _end(agents.skill(folder, json=json))


@app.command(short_help="List what works on this machine and what is missing.")
def doctor(json: Json = False) -> None:
    """List the parts that work on this machine and those that are missing. Exits 1 if optimize cannot work."""
    _end(machine.doctor(as_json=json))


def _end(code: int) -> None:
    if code:
        raise typer.Exit(int(code))


def _interrupted(number: int, frame: Any) -> NoReturn:
    raise Interrupted


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        app(args=arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(ExitCode.INTERNAL)
    except WarpwrightError as error:
        say(f"warpwright: {error}")
        return int(error.exit_code)
    except Interrupted:
        say("Interrupted.")
        return int(ExitCode.INTERRUPTED)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered would fail again at the end
        say(f"warpwright: {error.strerror}: make room and run the command again")
        return int(ExitCode.INTERNAL)
    return int(ExitCode.OK)
