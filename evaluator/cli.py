"""Run the judge from the command line: judge, admit, baseline, confirm, build, profile, doctor, serve, work.

Exit status: 0 PASSED, 1 any other Verdict, 2 INVALID_REFERENCE or bad usage, 3 INTERNAL_ERROR.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evaluator import recipe_sizes
from evaluator.batch.work import work
from evaluator.cage.policy import MINIMUM_VARIABLE, Minimum
from evaluator.devices.cpu_threads import THREADS_VARIABLE
from evaluator.devices.pools_ahead import PoolsAhead
from evaluator.doctor import examine, render
from evaluator.errors import ProblemError
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.schema import SchemaError, from_json, to_json
from evaluator.types import BaselineReport, Candidate, Domain, Problem

_USAGE = 2


def main(argv: Sequence[str] | None = None, *, ahead: PoolsAhead | None = None) -> int:
    """Run one command, and return the exit status. `ahead` has pools of children for `serve`."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.minimum_isolation:
        os.environ[MINIMUM_VARIABLE] = arguments.minimum_isolation
    if getattr(arguments, "threads", None):
        os.environ[THREADS_VARIABLE] = arguments.threads
    if arguments.command == "serve":
        from evaluator.serve import serve  # noqa: PLC0415  it imports torch, which takes seconds: not for all commands

        return serve(arguments.device, builds=arguments.builds, ahead=ahead)
    if arguments.command == "work":
        bundle = Path(arguments.bundle)
        results = Path(arguments.output) if arguments.output else bundle.with_suffix(".answers")
        return work(bundle, results, arguments.device, seconds=arguments.seconds, judges=arguments.judges)
    if arguments.command == "doctor":
        return _doctor(arguments.json, brief=arguments.brief)
    try:
        problem = _read_problem(arguments.problem, arguments.domain, arguments.size)
        candidate = _read_candidate(arguments.candidate)
        champion = _read_candidate(arguments.champion)
        known = _read_baseline(arguments.baseline, problem)
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return _USAGE
    except (ProblemError, SchemaError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _USAGE
    if candidate is None and arguments.command in ("judge", "build", "profile", "confirm"):
        parser.error(f"{arguments.command} needs --candidate")
    from evaluator.judging import Request, answer  # noqa: PLC0415  as above

    return answer(Request(problem, candidate, champion, known), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator", description=__doc__)
    parser.add_argument(
        "--minimum-isolation",
        choices=[m.value for m in Minimum],
        help=f"the least isolation to judge at (default: {MINIMUM_VARIABLE}, else any)",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (
        ("judge", "check and time one candidate"),
        ("admit", "check that a problem's reference can be optimised"),
        ("baseline", "time every baseline of a problem"),
        ("build", "screen and build a candidate without timing it"),
        ("profile", "break a candidate's time down: kernels or functions, registers, spills, shared memory"),
        ("confirm", "re-time a candidate in fresh processes against the champion and the baselines"),
    ):
        one = commands.add_parser(name, help=words, description=words)
        one.add_argument("--problem", required=True, metavar="P.py")
        one.add_argument("--candidate", metavar="C.py")
        one.add_argument("--champion", metavar="K.py")
        if name == "profile":
            one.add_argument(
                "--workload", metavar="NAME", help="the workload to profile (default: the first that is not held out)"
            )
        one.add_argument(
            "--baseline", metavar="B.json", help="a report of `baseline --json`, so that not all modes are timed again"
        )
        one.add_argument("--device", default="cpu", metavar="cpu|cuda:N")
        one.add_argument("--domain", choices=[d.value for d in Domain])
        words = "another workload, with this size (several with commas); repeatable"
        one.add_argument("--size", action="append", default=[], metavar="NAME=VALUE", help=words)
        one.add_argument("--json", metavar="FILE", help="write the result as JSON; - for standard output alone")
    one = commands.add_parser("doctor", help="examine what this machine can isolate and time")
    one.add_argument("--json", metavar="FILE", help="write the findings as JSON; - for standard output alone")
    one.add_argument("--brief", action="store_true", help="leave NVIDIA's tools out, which need seconds on a GPU")
    one = commands.add_parser("serve", help="serve JSON requests, one per line, until standard input ends")
    one.add_argument("--device", default="cpu", metavar="cpu|cuda:N")
    one.add_argument("--builds", action="store_true", help="get ready to build; nothing is started on the device ahead")
    one = commands.add_parser("work", help="do the work of a bundle and write its answers, without any network")
    one.add_argument("bundle", metavar="BUNDLE", help="a file of `warpwright bundle`")
    one.add_argument("-o", "--output", metavar="ANSWERS", help="the file to add answers to (default: BUNDLE.answers)")
    one.add_argument("--seconds", type=float, metavar="S", help="begin no task after so many seconds")
    words = "judges at once: one compiles while another one times, and each takes memory of the device (default: 1)"
    one.add_argument("--judges", type=int, default=1, metavar="N", help=words)
    one.add_argument("--device", default="cpu", metavar="cpu|cuda:N")
    for name in ("judge", "admit", "baseline", "profile", "confirm", "serve", "work"):
        words = "CPU threads of the reference, baselines and kernels; kernels that pass are judged with further numbers"
        words += f" (after commas), too (default: {THREADS_VARIABLE}, else 1)"
        commands.choices[name].add_argument("--threads", metavar="N|all", help=words)
    return parser


def _doctor(target: str | None, *, brief: bool) -> int:
    """Return 0 if kernels can be judged here on any device."""
    found = examine(brief=brief)
    text = json.dumps(to_json(found), indent=2)
    if target not in (None, "-"):
        Path(str(target)).write_text(text + "\n", encoding="utf-8")
    print(text if target == "-" else render(found))
    return 0 if found.can_judge_cpu or found.can_judge_cuda else 1


def _read_problem(path: str, domain: str | None, sizes: Sequence[str]) -> Problem:
    problem = read_problem(Path(path).read_bytes(), Path(path).stem)
    problem = recipe_sizes.with_workloads(problem, [recipe_sizes.parse_size(one) for one in sizes])
    return replace(problem, domain=Domain(domain)) if domain else problem


def _read_candidate(path: str | None) -> Candidate | None:
    if path is None:
        return None
    text = Path(path).read_bytes().decode("utf-8", "surrogateescape")
    return Candidate(source=text, language=detect(text), proposer="file")


def _read_baseline(path: str | None, problem: Problem) -> BaselineReport | None:
    if path is None:
        return None
    found = from_json(BaselineReport, json.loads(Path(path).read_text(encoding="utf-8")))
    if found.problem_hash != problem.hash:
        raise ValueError(
            f"{path} has the baselines of another problem, or of an earlier version of this one: create it again with"
            " `python -m evaluator baseline --problem P.py --json B.json`"
        )
    return found
