"""The heart of a program of torch.compile: its kernels and calls, without the wrapper's noise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.child.generated import generated, heart

# As a Baseline's child has it: without pools of compilers and precompiled headers, which take most of the time.
_COMPILER_ENVIRONMENT = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}
ROOT = Path(__file__).resolve().parents[3]
TRITON = """
import torch
async_compile = AsyncCompile()

triton_red_fused_sum_0 = async_compile.triton('triton_red_fused_sum_0', '''
import triton
import triton.language as tl
@triton_heuristics.reduction(size_hints={'x': 64}, inductor_meta={'kernel_name': 't'})
@triton.jit
def triton_red_fused_sum_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 64
    # a comment
    tl.store(out_ptr0 + (x0), tmp2, xmask)
''', device_str='cuda')

async_compile.wait(globals())
class Runner:
    def call(self, args):
        arg0_1, = args
        assert_size_stride(arg0_1, (64, 64), (64, 1))
        triton_red_fused_sum_0.run(arg0_1, buf0, 64, 64, stream=stream0)
        del arg0_1
        return (buf0, )

runner = Runner()
"""


def test_kernels_and_calls_are_kept_and_the_rest_left_out() -> None:
    assert heart(TRITON).split("\n") == [
        "@triton.jit",
        "def triton_red_fused_sum_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):",
        "    xnumel = 64",
        "    tl.store(out_ptr0 + (x0), tmp2, xmask)",
        "",
        "    def call(self, args):",
        "        arg0_1, = args",
        "        triton_red_fused_sum_0.run(arg0_1, buf0, 64, 64, stream=stream0)",
        "        return (buf0, )",
    ]
    assert heart("nothing of the kind") == ""


def test_nothing_compiled_is_nothing_told() -> None:
    code = "from evaluator.child.generated import generated; print(generated({}, []))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "{'code': ''}"
    assert isinstance(generated({}, [])["code"], str)


@pytest.mark.soak  # test_baseline.py looks at what a Baseline's child made
@pytest.mark.compiles
def test_what_inductor_makes_here_is_found() -> None:
    code = """
import torch
from evaluator.child.generated import generated
made = torch.compile(lambda x: (x * 2 + 1).relu().sum(-1), dynamic=False)
made(torch.randn(64, 100))
print(generated({}, [])["code"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **_COMPILER_ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1000:]
    assert 'extern "C"' in done.stdout
    assert "call(" in done.stdout
