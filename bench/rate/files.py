"""Make the fifty files of `bench.rate`: ten problems, five kernels each, Triton and CUDA C++ mixed, a third wrong.

Problems are written as KernelBench writes them (`Model`, `get_inputs`, `get_init_inputs`), so both judges read the same
files. CUDA C++ is built with NVRTC through `warpwright_native`, one file that imports nothing of ours. With
`load_inline` a third of the CUDA files use torch's own builder instead, as KernelBench's do.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS, COLUMNS = 4096, 2048

_PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {torch}


def get_inputs():
    return [torch.randn({rows}, {columns})]


def get_init_inputs():
    return []
"""

_TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    y = {triton}
    tl.store(y_ptr + row * n + at, y, mask=at < {end})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        kernel[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n), num_warps={warps})
        return y
"""

_CUDA_KERNEL = """
__device__ __forceinline__ float all(float v, float* shared) {
  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int w = 0; w < THREADS / 32; w++) v += shared[w];
  __syncthreads();
  return v;
}
__device__ __forceinline__ float larger(float a, float b) { return a != a || a > b ? a : b; }  // NaN is the largest
__device__ __forceinline__ float most(float v, float* shared) {
  for (int o = 16; o; o /= 2) v = larger(v, __shfl_xor_sync(0xffffffff, v, o));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = shared[0];
  for (int w = 1; w < THREADS / 32; w++) v = larger(v, shared[w]);
  __syncthreads();
  return v;
}
extern "C" __global__ void kernel(const float* in, float* out, int n) {
  __shared__ float shared[32];
  const float* p = in + (size_t)blockIdx.x * n;
  float* q = out + (size_t)blockIdx.x * n;
  {reduce}
  for (int i = threadIdx.x; i < {end}; i += THREADS) { float x = p[i]; q[i] = {cuda}; }
}
"""

_NVRTC = '''import torch
from warpwright_native import load_cuda

SOURCE = r"""{kernel}"""
launch = load_cuda(SOURCE, defines={"THREADS": {threads}}).kernel("kernel")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        launch(grid=(x.shape[0],), block=({threads},), args=(x, y, x.shape[1]))
        return y
'''

_INLINE = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#define THREADS {threads}
{kernel}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  kernel<<<x.size(0), THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(1));
  return y;
}
"""
HEAD = "torch::Tensor run(torch::Tensor x);"
module = load_inline("{name}", cpp_sources=HEAD, cuda_sources=SOURCE, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.run(x)
'''


@dataclass(frozen=True, slots=True)
class Op:
    """One problem: the form of one row in torch, Triton and CUDA C++. `reduce` comes before the loop that writes."""

    name: str
    torch: str
    triton: str
    cuda: str
    reduce: str = ""


_SQUARES = "float s = 0; for (int i = threadIdx.x; i < n; i += THREADS) s += p[i] * p[i]; s = all(s, shared);"
OPS = (
    Op("swish", "x * torch.sigmoid(x)", "x * tl.sigmoid(x)", "x / (1.0f + expf(-x))"),
    Op("relu_squared", "torch.relu(x) ** 2", "tl.where(x <= 0, 0.0, x * x)", "x <= 0 ? 0.0f : x * x"),
    Op("softsign", "torch.nn.functional.softsign(x)", "x / (1.0 + tl.abs(x))", "x / (1.0f + fabsf(x))"),
    Op(
        "gelu", "torch.nn.functional.gelu(x)", "0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))",
        "0.5f * x * (1.0f + erff(x * 0.70710678f))",
    ),
    Op(
        "hardswish", "torch.nn.functional.hardswish(x)", "x * tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0",
        "x * fminf(fmaxf(x + 3.0f, 0.0f), 6.0f) / 6.0f",
    ),
    Op(
        "rmsnorm", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)",
        "x * (1.0 / tl.sqrt(tl.sum(x * x) / n + 1e-5))", "x * scale",
        _SQUARES + " float scale = 1.0f / sqrtf(s / n + 1e-5f);",
    ),
    Op(
        "l2norm", "x / x.norm(dim=-1, keepdim=True)", "x / tl.sqrt(tl.sum(x * x))", "x / length",
        _SQUARES + " float length = sqrtf(s);",
    ),
    Op(
        "softmax", "torch.softmax(x, dim=-1)",
        "tl.exp(x - tl.max(tl.where(at < n, x, -float('inf'))))"
        " / tl.sum(tl.where(at < n, tl.exp(x - tl.max(tl.where(at < n, x, -float('inf')))), 0.0))",
        "expf(x - m) / s",
        "float m = p[0]; for (int i = threadIdx.x; i < n; i += THREADS) m = fmaxf(m, p[i]); m = most(m, shared);"
        " float s = 0; for (int i = threadIdx.x; i < n; i += THREADS) s += expf(p[i] - m); s = all(s, shared);",
    ),
    Op(
        "centred", "x - x.mean(-1, keepdim=True)", "x - tl.sum(x) / n", "x - s",
        "float s = 0; for (int i = threadIdx.x; i < n; i += THREADS) s += p[i]; s = all(s, shared) / n;",
    ),
    Op(
        "scaled_by_most", "x / x.abs().amax(-1, keepdim=True)",
        "x / tl.where(tl.sum((x != x).to(tl.int32)) > 0, float('nan'), tl.max(tl.abs(x)))", "x / m",
        "float m = 0; for (int i = threadIdx.x; i < n; i += THREADS) m = larger(fabsf(p[i]), m); m = most(m, shared);",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class File:
    """One kernel for one problem. `backend` is KernelBench's name for it; `right` is the expected answer of either
    judge."""

    name: str
    problem: str
    source: str
    backend: str
    right: bool
    inline: bool = False


def files(*, load_inline: bool = False) -> list[File]:
    """Return the fifty files, always the same; seventeen are wrong.

    With `load_inline` it builds some of the CUDA files, under names of their own.
    """
    found = []
    for number, op in enumerate(OPS):
        problem = _PROBLEM.format(torch=op.torch, rows=ROWS, columns=COLUMNS)
        wrong_cuda = number % 10 < 7
        inline = load_inline and number % 3 == 0
        made = [
            ("triton_4", _triton(op, 4), "triton", True, False),
            ("triton_8", _triton(op, 8), "triton", True, False),
            ("triton_wrong", _triton(op, 4, wrong=number), "triton", False, False),
            ("cuda_256", _cuda(op, 256, inline=inline), "cuda", True, inline),
            ("cuda_wrong", _cuda(op, 128, wrong=number), "cuda", False, False)
            if wrong_cuda
            else ("cuda_512", _cuda(op, 512), "cuda", True, False),
        ]
        found += [File(f"{op.name}_{kind}{'_inline' if built else ''}", problem, source, backend, right, built)
                  for kind, source, backend, right, built in made]  # fmt: skip
    return found


def _triton(op: Op, warps: int, wrong: int | None = None) -> str:
    source = _TRITON.replace("{triton}", op.triton).replace("{warps}", str(warps))
    source = source.replace("{end}", "n - 1" if wrong is not None and wrong % 3 == 0 else "n")
    if wrong is not None and wrong % 3 == 1:
        source = source.replace("    tl.store(", "    y = y * 1.02\n    tl.store(")
    if wrong is not None and wrong % 3 == 2:
        source = source.replace("tl.store(", "tl.stor(")
    return source


def _cuda(op: Op, threads: int, wrong: int | None = None, *, inline: bool = False) -> str:
    end = "n - 1" if wrong is not None and wrong % 3 == 0 else "n"
    kernel = _CUDA_KERNEL.replace("{reduce}", op.reduce).replace("{end}", end).replace("{cuda}", op.cuda)
    if wrong is not None and wrong % 3 == 1:
        kernel = kernel.replace("q[i] = ", "q[i] = 1.02f * (").replace("; }\n}", "); }\n}")
    if wrong is not None and wrong % 3 == 2:
        kernel = kernel.replace("float x = p[i];", "float x = p[i]")
    template = _INLINE if inline else _NVRTC
    source = template.replace("{kernel}", kernel).replace("{threads}", str(threads))
    return source.replace("{name}", f"inline_{op.name}_{threads}")
