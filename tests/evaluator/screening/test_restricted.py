"""Restricted files cannot reach the harness around their calls: the synthesiser's are, and these escapes are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.screening.restricted import is_restricted

HERE = Path(__file__).parent
GPU_CANDIDATES = HERE.parents[1] / "gpu" / "candidates"

HEAD = "import torch\nimport triton\nimport triton.language as tl\nfrom torch import nn\n"
MODEL = """
class ModelNew(nn.Module):
    def __init__(self, hidden, dtype="float32", eps=1e-6):
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = nn.Parameter(torch.ones(hidden, dtype=kind))
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        rows, hidden = x.shape
        out = torch.empty_like(x)
        grid = (triton.cdiv(rows, 4),)
        kernel[grid](x, self.weight, out, rows, hidden, BLOCK=triton.next_power_of_2(hidden), num_warps=8)
        return out
"""
KERNEL = """
@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, rows, hidden, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + j, mask=j < hidden, other=0.0).to(tl.float32)
    tl.store(out_ptr + j, tl.math.exp(x), mask=j < hidden)
"""
RESTRICTED = HEAD + KERNEL + MODEL


def test_a_triton_file_is_restricted() -> None:
    assert is_restricted(RESTRICTED)
    assert is_restricted((GPU_CANDIDATES / "honest_triton.py").read_text())


def test_a_file_may_ask_for_the_number_of_processors_and_draw_weights() -> None:
    asks = "count = torch.cuda.get_device_properties(0).multi_processor_count\n"
    draws = "weight = torch.randn(3) + torch.rand(3) + torch.randint(0, 7, (3,))\n"
    assert is_restricted(RESTRICTED + asks + draws + "unroll = next(u for u in (8, 4, 2, 1) if u <= count)\n")


def test_what_device_code_and_library_calls_need_is_restricted() -> None:
    head = "import torch.nn.functional as F\nfrom triton.tools.tensor_descriptor import TensorDescriptor\n"
    kernel = "@triton.jit\ndef later(d):\n    tl.extra.cuda.gdc_wait()\n    d.store([0], d.load([0]))\n"
    host = "def f(x, w):\n    later[(1,)](TensorDescriptor.from_tensor(x, [16]))\n    return F.linear(F.gelu(x), w)\n"
    assert is_restricted(RESTRICTED + head + kernel + host)


def test_a_dtype_s_name_may_be_another_variable_s_in_another_function() -> None:
    other = "def f(kind):\n    return kind(3)\n"
    assert is_restricted(RESTRICTED + other)
    inside = MODEL.replace("self.eps = eps", "self.eps = kind")
    assert not is_restricted(HEAD + KERNEL + inside)
    nested = MODEL.replace("self.eps = eps", "self.eps = (lambda: kind)()")
    assert not is_restricted(HEAD + KERNEL + nested)


def test_cuda_through_the_helper_is_restricted_and_native_code_of_the_host_is_not() -> None:
    cuda = "from warpwright_native import load_cuda\n"
    cuda += 'module = load_cuda("...", defines={"N": 4})\nrun = module.kernel("k")\n'
    assert is_restricted("import torch\nfrom torch import nn\n" + cuda)
    assert not is_restricted(cuda.replace("load_cuda", "load_cpp"))
    assert not is_restricted((GPU_CANDIDATES / "evil_late_write.py").read_text())


@pytest.mark.parametrize(
    "line",
    [
        "import sys",
        "import torch.nn",
        "import torch as harness, gc",
        "from torch import cuda",
        "from torch import *",
        "torch.sys.modules.clear()",
        "torch.cuda.synchronize()",
        "torch.cuda",
        "cuda = torch.cuda\ncuda.get_device_properties(0)",
        "torch.cuda.get_device_properties.__globals__",
        "torch.cuda.get_device_properties(0).__class__",
        "torch.cuda.memory",
        "tl.extra.cuda",
        "tl.extra.cuda.utils",
        "extra = tl.extra\nextra.cuda.gdc_wait",
        "import torch.nn.functional as F\nF.torch",
        "import torch.nn.functional as F\nF.linear.__globals__",
        "from triton.tools.tensor_descriptor import torch as harness",
        "kind = getattr(torch, 'load')\ndef f():\n    return kind('/tmp/x')",
        "class A:\n    kind = getattr(torch, 'load')\n    def f(self):\n        return self.kind('/tmp/x')",
        "torch.compile(print)",
        "torch.empty = None",
        "t = torch\nt.sys",
        "nn.modules.module.torch.sys",
        "nn.Module.__init__ = None",
        "nn.init.torch",
        "tl = torch",
        "def f(torch):\n    return torch.sys",
        "def f(self):\n    return self.sys\nf(torch)",
        "(lambda self: self.sys)(torch)",
        "class A:\n    def f(self):\n        return self.sys\n    g = f(torch)",
        "class A:\n    def f(self, x=print()):\n        return x",
        "class A:\n    def f(self) -> print():\n        return 1",
        "class A(print):\n    pass",
        "class A(nn.Module, metaclass=print):\n    pass",
        "@triton.jit\nclass A(nn.Module):\n    pass",
        "class A(nn.Module):\n    @triton.jit\n    def f(self):\n        return self.sys",
        "[self for self in [torch]][0].sys",
        "kind = getattr(torch, 'load')\nkind('/tmp/x')",
        "getattr(torch, 'sys')",
        "def f(dtype):\n    return dtype\nf(dtype=getattr(torch, 'load'))('/tmp/x')",
        "getattr = max",
        "''.__class__",
        "'{0.__class__}'.format(torch)",
        "kernel.fn.__globals__",
        "eval('1')",
        "open('/proc/self/mem')",
        "exec('import sys')",
        "try:\n    pass\nexcept Exception as error:\n    error.__traceback__",
        "with open('x') as f:\n    pass",
        "del torch",
        "def f():\n    global torch\n    torch = 1",
        "__builtins__",
        "super().__init__.__globals__",
        "vars(torch)",
    ],
)
def test_an_escape_is_not_restricted(line: str) -> None:
    assert not is_restricted(RESTRICTED + "\n" + line + "\n"), line


def test_a_file_that_does_not_parse_is_not_restricted() -> None:
    assert not is_restricted("def f(:")
    assert not is_restricted("\0")
    assert not is_restricted("(" * 5000)
