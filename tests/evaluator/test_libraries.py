"""What really ran is named, whatever the text says, and the library policy holds for that."""

from __future__ import annotations

import ctypes
import os

import pytest

from evaluator import libraries, symbols
from evaluator.errors import Rejection
from evaluator.judge import Judge
from evaluator.problem import read_problem
from evaluator.types import Stage, Verdict
from tests.evaluator.rooms import PROBLEM, candidate, eager_only

HIDDEN = candidate("""class ModelNew(Base):
    def forward(self, x):
        scale = getattr(torch.ops.aten, "m" + "m").default(x.square(), torch.ones(x.shape[-1], 1) / x.shape[-1])
        return x * torch.rsqrt(scale + 1e-6) * self.weight
""")


def test_a_library_call_that_the_text_hides_is_named_or_refused(judge: Judge) -> None:
    strict = read_problem(PROBLEM + "\nALLOW_LIBRARY = False\n", "strict")
    found = judge.judge(strict, HIDDEN, eager_only(judge, strict))
    assert found.verdict is Verdict.POLICY_VIOLATION, (found.reason, found.evidence)
    assert found.evidence["libraries"] == ["aten::mm"]
    free = read_problem(PROBLEM, "free")
    found = judge.judge(free, HIDDEN, eager_only(judge, free))
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)
    assert "aten::mm" in found.libraries
    assert found.resources["operations"]["aten.mm"] == 1
    assert sum(found.resources["ran"].values()) > 0.5


def test_an_address_is_found_in_its_function() -> None:
    libc = ctypes.CDLL(None)
    address = ctypes.cast(libc.qsort, ctypes.c_void_p).value
    assert address is not None
    (place,) = symbols.places(os.getpid(), [(os.getpid(), address)])
    assert place.startswith("libc")
    assert "qsort" in place
    assert symbols.places(os.getpid(), [(os.getpid(), 1)]) == {"unknown": 1}


def test_vendor_libraries_are_told_from_the_rest() -> None:
    seen = {"libtorch_cpu.so: mkl_blas_avx2_sgemm_kernel": 5, "libtorch_cpu.so: _ZN2at6native3add": 95}
    assert libraries.seen(seen) == ["libtorch_cpu.so: mkl_blas_avx2_sgemm_kernel"]
    assert libraries.seen({"libscipy_openblas64_.so: gotoblas": 1, "the candidate's own library": 99}) == []
    assert libraries.named(["aten.mm", "aten.add", "aten._softmax"]) == ["aten::_softmax", "aten::mm"]
    strict = read_problem(PROBLEM + "\nALLOW_LIBRARY = False\n", "strict")
    with pytest.raises(Rejection):
        libraries.check(strict, ["aten::mm"], Stage.INTEGRITY)
    libraries.check(read_problem(PROBLEM, "free"), ["aten::mm"], Stage.INTEGRITY)
