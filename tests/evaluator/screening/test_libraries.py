"""The libraries that really ran are named, and the library policy holds for them, independently of the text."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluator.errors import ChildError, ChildTimeout, Rejection
from evaluator.problem import read_problem
from evaluator.sandbox import symbols, vendor_code
from evaluator.sandbox.process import Place
from evaluator.screening import launched_kernels, libraries
from evaluator.stages.judge import Judge
from evaluator.types import DeviceKind, Stage, Verdict
from tests.evaluator.rooms import PROBLEM, candidate, eager_only

HIDDEN = candidate("""class ModelNew(Base):
    def forward(self, x):
        scale = getattr(torch.ops.aten, "m" + "m").default(x.square(), torch.ones(x.shape[-1], 1) / x.shape[-1])
        return x * torch.rsqrt(scale + 1e-6) * self.weight
""")


@pytest.mark.clock  # where others use the judge's core, it may see nothing
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
    seen, foreign = symbols.count_places(os.getpid(), [(os.getpid(), Place(address, b""))])
    (place,) = seen
    assert not foreign
    assert place.startswith("libc")
    assert "qsort" in place
    nowhere = Place(1, b"code")
    assert symbols.count_places(os.getpid(), [(os.getpid(), nowhere)]) == ({"unknown": 1}, {nowhere: 1})


def test_code_of_a_library_is_known_wherever_it_lies() -> None:
    """Moved by whole pages, and by less; not where only its first bytes are a library's."""
    code = max(vendor_code.code_segments(), key=lambda one: ("blas" in one.path, -one.mapped))
    with Path(code.path).open("rb") as file:
        file.seek(code.offset + 5000)
        piece = file.read(48)
    moved, shifted = Place((7 << 12) + (code.offset + 5000) % 4096, piece), Place(64, piece)
    others = [Place(moved.address, piece[:16] + os.urandom(32)), Place(moved.address, piece[:8])]
    found = vendor_code.find_pieces({moved: 2, shifted: 5, **dict.fromkeys(others, 9)})
    assert set(found) == {moved, shifted}
    counts = symbols.copied_places({moved: 2, shifted: 5})
    assert sum(counts.values()) == 7
    assert libraries.sampled_libraries(counts)


def test_library_code_that_cannot_run_is_hidden() -> None:
    loaded = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    known = {code.path for code in vendor_code.code_segments() if code.mapped > 8192}
    mine = [one for one in loaded if len(one) == 6 and one[5] in known]
    ranges = [
        (*(int(end, 16) for end in place.split("-")), int(offset, 16), path, "x" in access)
        for place, access, offset, _, _, path in mine
    ]
    assert ranges
    assert vendor_code.find_hidden(one[:4] for one in ranges if not one[4]) == []
    assert vendor_code.find_hidden(one[:4] for one in ranges) == sorted({one[3] for one in ranges})


def test_vendor_libraries_are_told_from_the_rest() -> None:
    seen = {"libtorch_cpu.so: mkl_blas_avx2_sgemm_kernel": 5, "libtorch_cpu.so: _ZN2at6native3add": 95}
    assert libraries.sampled_libraries(seen) == ["libtorch_cpu.so: mkl_blas_avx2_sgemm_kernel"]
    assert (
        libraries.sampled_libraries({"libscipy_openblas64_.so: gotoblas": 1, "the candidate's own library": 99}) == []
    )
    assert libraries.library_operations(["aten.mm", "aten.add", "aten._softmax"]) == ["aten::_softmax", "aten::mm"]
    strict = read_problem(PROBLEM + "\nALLOW_LIBRARY = False\n", "strict")
    with pytest.raises(Rejection):
        libraries.check_policy(strict, ["aten::mm"], Stage.INTEGRITY)
    libraries.check_policy(read_problem(PROBLEM, "free"), ["aten::mm"], Stage.INTEGRITY)


OWN = candidate("""
SOURCE = r'''
extern "C" __global__ void __launch_bounds__(256) ampere_sgemm_of_mine(const float* a) {}
'''


def sm90_xmma_gemm_mine(): pass


class ModelNew(Base):
    pass
""")


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_128x64_nn",
        "sm90_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x32_cublas",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",
        "void gemv2T_kernel_val<int, int, float, float, float, 128, 16, 4, 4, false>(float)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)",
        "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float>(float)",
        "void vector_fft<128u>(float)",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw",
    ],
)
def test_kernels_of_vendor_libraries_are_told_by_name(name: str) -> None:
    assert libraries.library_kernels([name, "rows"], OWN.source) == [name]


def test_own_kernels_may_be_called_anything() -> None:
    names = [
        "ampere_sgemm_of_mine",
        "sm90_xmma_gemm_mine",
        "gemm_kernel",
        "flash_attention",
        "matmul",
        "fft",
        "conv2d",
        "",
    ]
    torchs = [
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)",
        "Memset (Device)",
    ]
    assert libraries.library_kernels([*names, *torchs], OWN.source) == []


class Launches:
    """A child on a GPU that reports the kernels that ran, or fails."""

    def __init__(self, *names: str, fault: Exception | None = None) -> None:
        self.backend = SimpleNamespace(kind=DeviceKind.CUDA)
        self.names, self.fault, self.asked = names, fault, 0

    def profile(self, tree: object, tensors: object, *, calls: int, timeout_s: float) -> list[dict[str, object]]:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return [{"name": name, "time_us": 1.0} for name in self.names]

    def recipe(self, function: str, sizes: Mapping[str, object], seed: int) -> SimpleNamespace:
        assert sizes["rows"] == 48, "the last one that is shown"
        return SimpleNamespace(tree={}, tensors=())


def test_on_a_gpu_kernels_are_looked_at_where_libraries_are_forbidden() -> None:
    strict, free = read_problem(PROBLEM + "\nALLOW_LIBRARY = False\n", "strict"), read_problem(PROBLEM, "free")
    gemm = Launches("ampere_sgemm_128x64_nn", "mine")
    assert launched_kernels.library_kernels(strict, OWN, gemm, gemm) == ["ampere_sgemm_128x64_nn"]  # type: ignore[arg-type]
    assert launched_kernels.library_kernels(free, OWN, gemm, gemm) == []  # type: ignore[arg-type]
    assert gemm.asked == 1
    silent = Launches(fault=ChildError("RuntimeError", "no CUPTI", "", output=""))
    assert launched_kernels.library_kernels(strict, OWN, silent, silent) == []  # type: ignore[arg-type]
    gone = Launches(fault=ChildTimeout("profile", 30.0, output=""))
    with pytest.raises(Rejection) as found:
        launched_kernels.library_kernels(strict, OWN, gone, gone)  # type: ignore[arg-type]
    assert found.value.verdict is Verdict.TIMEOUT
