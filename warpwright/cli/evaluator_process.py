"""Run the judge as a separate program, `python -m evaluator ...`: this package imports no other room."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence

from warpwright import paths
from warpwright.errors import Interrupted, Missing

STOP_S = 10.0


def command(arguments: Sequence[str]) -> list[str]:
    """Return the judge's command line. Raises Missing, with what to install, if the judge is not installed."""
    if not (paths.checkout() / "evaluator" / "__main__.py").is_file():
        raise Missing(
            "the judge is not part of this installation. It runs from a checkout of Warpwright: "
            "pip install -e '.[judge]' there, or use make"
        )
    if importlib.util.find_spec("torch") is None:
        raise Missing("the judge needs PyTorch, which is not installed here: pip install -e '.[judge]'")
    return [sys.executable, "-m", "evaluator", *arguments]


def environment() -> dict[str, str]:
    """Return the environment with the checkout on the path, so that any working folder is fine."""
    path = os.pathsep.join(part for part in (str(paths.checkout()), os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path}


def run(arguments: Sequence[str]) -> int:
    """Run the judge on our own standard streams and return its exit code."""
    with subprocess.Popen(command(arguments), env=environment()) as process:
        try:
            return process.wait()
        except Interrupted:
            try:
                process.wait(STOP_S)  # the terminal sent it the interrupt, too
            except subprocess.TimeoutExpired:
                process.kill()
            raise


def capture(arguments: Sequence[str], *, timeout_s: float) -> tuple[int, str, str]:
    """Run the judge; return its exit code, standard output and standard error. Raises subprocess.TimeoutExpired."""
    done = subprocess.run(
        command(arguments), env=environment(), capture_output=True, text=True, timeout=timeout_s, check=False
    )
    return done.returncode, done.stdout, done.stderr
