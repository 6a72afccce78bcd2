"""What is said of a child's fault."""

from __future__ import annotations

import pytest

from evaluator.errors import ChildError
from evaluator.rejections import rejection
from evaluator.types import Stage, Verdict

SOURCE = "def kernel(x_ptr):\n    y = tl.sum(x_ptr)\n    z = tl.load(nowhere)\n        ^"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (f"at 3:8:\n{SOURCE}\nNameError('nowhere is not defined')", "at 3:8: NameError('nowhere is not defined')"),
        (f"at 3:8:\n{SOURCE}", "at 3:8: z = tl.load(nowhere)"),
        (f"at 9:4:\ndef other():\n^\nat 3:8:\n{SOURCE}\ninner cause\n", "at 9:4: inner cause"),
        ("at 3:8:\n <source unavailable>\nno such operation", "at 3:8: no such operation"),
        ("at 3:8:", "at 3:8:"),
        ("shared memory is short\nsecond line", "shared memory is short"),
        ("", ""),
    ],
)
def test_the_cause_of_tritons_compile_error_is_told(message: str, said: str) -> None:
    found = rejection(ChildError("CompilationError", message), Stage.CORRECTNESS, "checking small")
    assert found.verdict is Verdict.BUILD_ERROR
    assert found.reason == f"checking small: CompilationError: {said}"


def test_other_errors_are_told_by_their_first_line() -> None:
    found = rejection(ChildError("ValueError", "at 3:8:\nmore"), Stage.CORRECTNESS, "checking small")
    assert (found.verdict, found.reason) == (Verdict.RUNTIME_ERROR, "checking small: ValueError: at 3:8:")
