"""Triton's interpreter in a child process: it must be chosen before Triton is imported, which takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Self

from tests.synthesis.checking import ROOT

CHECK = """
import functools, importlib.util, json, sys, traceback
import torch
import tests.synthesis.checking as checking
from tests.synthesis import halving

@functools.cache
def module(path):
    spec = importlib.util.spec_from_file_location("made", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made

checking.module = module
halving.install()
torch.set_num_threads(1)
for line in sys.stdin:
    case = json.loads(line)
    try:
        for candidate in case["candidates"]:
            for sizes in case["sizes"]:
                checking.Pair(case["reference"], candidate, sizes).check()
    except Exception:
        print(json.dumps(traceback.format_exc()[-3000:]), flush=True)
    else:
        print('"right"', flush=True)
"""


class Interpreter:
    """The child. It compares Candidates with their reference, one case after the other."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", CHECK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"},
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.communicate()

    def check(self, cases: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return "right" or a traceback for each case: its `reference` and `candidates` are files, `sizes` a list."""
        return {name: self._ask(case) for name, case in cases.items()}

    def _ask(self, case: Mapping[str, Any]) -> str:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            print(json.dumps(case), file=self._child.stdin, flush=True)
        except BrokenPipeError:
            return "the interpreter ended earlier"
        answer = self._child.stdout.readline()  # nothing if it ended: a store out of bounds does that
        return str(json.loads(answer)) if answer else f"the interpreter ended with {self._child.wait()}"
