"""Exported kernels on a GPU: right values, compiled, captured, as a layer of Hugging Face's kernels, and their cost.

`pytest -s tests/gpu/test_gpu_exports.py` prints host costs beside Triton's own launch, and import times.
"""

import io
import textwrap
import zipfile

import pytest

from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Language, WorkloadFacts
from service.exports import KERNELS, Export
from tests.support import scripts

PROBLEM = """import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "rows": 64, "columns": 1024, "device": "cuda"},
    {"name": "large", "rows": 4096, "columns": 1024, "device": "cuda"},
]


class Model(nn.Module):
    def __init__(self, columns, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(columns))
        self.eps = eps

    def forward(self, x, y):
        z = x + y
        return z * torch.rsqrt(z.square().mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs(rows=64, columns=1024):
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs(columns=1024):
    return [columns]
"""
TRITON = """import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 1024}, num_warps=w) for w in (2, 4, 8)], key=["columns"])
@triton.jit
def norm(x, y, w, out, columns, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    z = tl.load(x + at, inside, 0.0) + tl.load(y + at, inside, 0.0)
    scale = tl.rsqrt(tl.sum(z * z) / columns + eps)
    tl.store(out + at, z * scale * tl.load(w + tl.arange(0, BLOCK), inside, 0.0), inside)


class ModelNew(torch.nn.Module):
    def __init__(self, columns, eps=1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.eps = eps

    def forward(self, x, y):
        out = torch.empty_like(x)
        norm[(x.shape[0],)](x, y, self.weight, out, x.shape[1], self.eps)
        return out
"""
CUDA = '''import torch
from warpwright_native import load_cuda

SOURCE = r"""
extern "C" __global__ void residual_norm(
    const float* x, const float* y, const float* w, float* out, int columns, float eps) {
  __shared__ float sums[32];
  const float* a = x + (long)blockIdx.x * columns;
  const float* b = y + (long)blockIdx.x * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (a[i] + b[i]) * (a[i] + b[i]);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < blockDim.x / 32; i++) sum += sums[i];
  float scale = rsqrtf(sum / columns + eps);
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[(long)blockIdx.x * columns + i] = (a[i] + b[i]) * scale * w[i];
}
"""
norm = load_cuda(SOURCE).kernel("residual_norm")


class ModelNew(torch.nn.Module):
    def __init__(self, columns, eps=1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.eps = eps

    def forward(self, x, y):
        out = torch.empty_like(x)
        norm(grid=(x.shape[0],), block=(256,), args=[x, y, self.weight, out, x.shape[1], self.eps])
        return out
'''
SOURCES = {"triton": (TRITON, Language.TRITON), "cuda": (CUDA, Language.CUDA)}
PRELUDE = """
import importlib, subprocess, sys, timeit, warnings
import torch
import kernel
unguarded, ran = kernel.UnguardedModelNew.forward, []
def counted(self, *args):
    ran.append(1)
    return unguarded(self, *args)
kernel.UnguardedModelNew.forward = counted
model = kernel.ModelNew(1024).cuda()
with torch.no_grad():
    model.weight.normal_()
plain = kernel._ww_reference.Model(1024).cuda()
plain.load_state_dict(model.state_dict())
x, y = torch.randn(64, 1024, device="cuda"), torch.randn(64, 1024, device="cuda")

def right(call, *args, by_kernel=True):
    ran.clear()
    torch.testing.assert_close(call(*args), plain(*args), rtol=1e-4, atol=1e-4)
    assert bool(ran) == by_kernel, (ran, kernel.ModelNew._ww_parts[1:])
"""


def export(language: str) -> Export:
    source, kind = SOURCES[language]
    problem = read_problem(PROBLEM, "residual norm")
    facts = tuple(
        WorkloadFacts(
            workload=name,
            inputs=(f"float32 [{rows}, 1024]",) * 2,
            outputs=(),
            bytes_moved=0,
            constructor={"list": [1024]},
            arguments={"list": [{"tensor": 0}, {"tensor": 1}]},
        )
        for name, rows in (("small", 64), ("large", 4096))
    )
    return Export(
        problem=problem,
        candidate=Candidate(source=source, language=kind),
        candidate_id="cand_01",
        device_kind=DeviceKind.CUDA,
        evaluation=None,
        confirmed=False,
        facts=facts,
        dated="2026-11-26T08:00:00Z",
        proposed_by="hand",
    )


@pytest.fixture(scope="module", params=list(SOURCES))
def folder(request, tmp_path_factory):
    made = tmp_path_factory.mktemp(request.param)
    text = KERNELS["py"].build(export(request.param))
    (made / "kernel.py").write_text(text, encoding="utf-8")
    for number in range(28):  # each another operator
        (made / f"kernel_{number}.py").write_text(
            text.replace("module='ww_", f"module='ww_{number}_"), encoding="utf-8"
        )
    return made


def script(folder, text):
    good, said = scripts.run(PRELUDE + textwrap.dedent(text), folder, timeout_s=300)
    print(said)
    assert good, said


@pytest.mark.timeout(400)
def test_the_check_passes(folder):
    done = scripts.run_file(folder / "kernel.py", "--check", timeout_s=300)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(400)
def test_it_is_compiled_exported_trained_and_captured(folder):
    script(folder, """
        warnings.simplefilter("ignore")
        with torch.no_grad():
            right(model, x, y)
            right(model, x[:1], y[:1])
            right(torch.compile(model, fullgraph=True), x, y)
            right(torch.compile(model, fullgraph=True, mode="reduce-overhead"), x, y)
            right(torch.export.export(model, (x, y)).module(), x, y)
            right(torch.jit.trace(model, (x, y)), x, y)
            graph = torch.cuda.CUDAGraph()
            a, b = x.clone(), y.clone()
            model(a, b)
            with torch.cuda.graph(graph):
                out = model(a, b)
            a.normal_()
            graph.replay()
            torch.testing.assert_close(out, plain(a, b), rtol=1e-4, atol=1e-4)
            right(model, x.t().contiguous().t(), y, by_kernel=False)
            right(model.double(), x.double(), y.double(), by_kernel=False) if plain.double() else None
        model.float(), plain.float()
        for one in (model, plain):
            one(x, y).square().sum().backward()
        torch.testing.assert_close(model.weight.grad, plain.weight.grad)
        weights = [model.weight.detach()]
        arguments = ([x, y], weights, model._ww_made, 0)
        torch.library.opcheck(getattr(torch.ops, kernel._WW["module"]).call, arguments)
    """)  # fmt: skip


@pytest.mark.timeout(400)
def test_host_cost_and_import_time(folder):
    """At most 8 us a guarded call, and 28 imports in a second (with a second's grace each for a busy machine)."""
    script(folder, """
        kernel.UnguardedModelNew.forward = unguarded
        alone = kernel.UnguardedModelNew(1024).cuda()
        def cost(call):
            for _ in range(20):
                call(x, y)
            times = []
            for _ in range(100):
                times.append(timeit.timeit(lambda: call(x, y), number=50) / 50 * 1e6)
                torch.cuda.synchronize()
            return min(times)
        fresh = kernel.ModelNew(1024).cuda()
        with torch.no_grad():
            for label, call in (("the kernel's own launch", alone), ("guarded", fresh), ("reference", plain)):
                print(f"{label}: {cost(call):.2f} us")
            fresh._ww_state.calls = dict.fromkeys(fresh._ww_state.calls, lambda *args: None)
            guard = cost(fresh.forward)
        print(f"the guard alone {guard:.2f} us a call")
        timer = "import sys, time, torch; torch.cuda.init(); import triton; t = time.perf_counter();"
        timer += "[__import__(f'kernel_{n}') for n in range(28)]; print(time.perf_counter() - t)"
        command = [sys.executable, "-c", timer]
        seconds = [float(subprocess.run(command, capture_output=True, text=True).stdout) for _ in range(2)]
        print(f"28 imports: {seconds[0]:.2f} s, and again {seconds[1]:.2f} s")
        assert guard < 16 and seconds[1] < 2, (guard, seconds)
    """)  # fmt: skip


@pytest.mark.timeout(400)
@pytest.mark.parametrize("language", list(SOURCES))
def test_the_kernels_package_loads_the_cuda_variant(language, tmp_path):
    pytest.importorskip("kernels")
    zipfile.ZipFile(io.BytesIO(KERNELS["hf-kernel"].build(export(language)))).extractall(tmp_path)
    good, said = scripts.run(textwrap.dedent("""
        import copy, warnings
        warnings.simplefilter("ignore")
        from pathlib import Path
        import kernels, torch
        folder = next(Path().glob("*/build")).parent
        found = kernels.get_local_kernel(folder)
        unguarded, ran = found.model.UnguardedModelNew.forward, []
        found.model.UnguardedModelNew.forward = lambda self, *args: (ran.append(1), unguarded(self, *args))[1]
        kernels.replace_kernel_forward_from_hub(found.Model, "ResidualNorm")
        mapping = {"ResidualNorm": {"cuda": kernels.LocalLayerRepository(folder, layer_name="ResidualNorm")}}
        plain = found.Model(1024).cuda()
        model, x = copy.deepcopy(plain), [torch.randn(64, 1024, device="cuda") for _ in range(2)]
        with torch.no_grad(), kernels.use_kernel_mapping(mapping):
            kernels.kernelize(model, mode=kernels.Mode.INFERENCE | kernels.Mode.TORCH_COMPILE, device="cuda")
            for each in (model, torch.compile(model, fullgraph=True)):
                torch.testing.assert_close(each(*x), plain(*x), rtol=1e-4, atol=1e-4)
        assert len(ran) >= 2, ran
    """), tmp_path, timeout_s=300)  # fmt: skip
    assert good, said
