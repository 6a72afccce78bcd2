"""Kernels are compiled for a GPU that is elsewhere, and nothing else is asked of it."""

from __future__ import annotations

import json

import pytest

from evaluator.errors import CageError
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.schema import to_json
from evaluator.serve import answer, make_backend
from evaluator.stages.build import build
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, DeviceKind
from tests.evaluator.rooms import DOUBLE_IN_TRITON

pytest.importorskip("triton")
REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs(n=4096):
    return [torch.randn(n)]
"""


@pytest.mark.compiles
def test_kernels_compile_for_it_and_the_compilers_words_are_told() -> None:
    judge = Judge(make_backend("sm_90"))
    try:
        assert (judge.device.kind, judge.device.facts["capability"]) == (DeviceKind.CUDA, "9.0")
        problem = read_problem(REFERENCE.encode(), "double")

        def compiled(source: str) -> str:
            report = build(judge, problem, Candidate(source=source, language=detect(source)))
            assert report.evaluation is None
            return str(report.resources.get("compile_error", ""))

        assert compiled(DOUBLE_IN_TRITON) == ""
        wrong = compiled(DOUBLE_IN_TRITON.replace("tl.load(", "tl.lode("))
        assert "lode" in wrong
        assert "at 4:" in wrong or "at 3:" in wrong
        request = json.dumps({"id": 1, "op": "judge", "problem": to_json(problem), "candidate": {}})
        assert "only builds" in answer(judge, request)["error"]
    finally:
        judge.close()


def test_other_names_are_refused() -> None:
    with pytest.raises(CageError, match="sm_90"):
        make_backend("sm_x")
