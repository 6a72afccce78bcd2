"""load_cuda on a device: launches, captures, checks its arguments."""

import pytest

from evaluator.child.warpwright_native import CudaError, load_cuda

SOURCE = r"""
#include <cuda_bf16.h>
extern "C" __global__ void scale(const __nv_bfloat16* x, __nv_bfloat16* y, int n, float factor, long long shift) {
  extern __shared__ float room[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * factor + (float)shift);
}
"""


@pytest.fixture(scope="module")
def scale():
    kernel = load_cuda(SOURCE).kernel("scale")

    def call(x, y, factor=2.0, shift=1, shared_bytes=0):
        n = x.numel()
        kernel(grid=(-(-n // 256),), block=(256,), args=[x, y, n, factor, shift], shared_bytes=shared_bytes)

    return call


def test_launches_on_the_current_stream_and_is_captured(scale):
    import torch

    x, y = torch.randn(1000, device="cuda").bfloat16(), torch.empty(1000, device="cuda", dtype=torch.bfloat16)
    scale(x, y)
    torch.testing.assert_close(y, (x.float() * 2 + 1).bfloat16())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale(x, y, factor=-0.5, shift=-3, shared_bytes=100 * 1024)
    x.normal_()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, (x.float() * -0.5 - 3).bfloat16())


def test_wrong_arguments_are_named():
    import torch

    kernel = load_cuda(SOURCE).kernel("scale")
    x = torch.zeros(8, device="cuda", dtype=torch.bfloat16)
    for args, words in (
        ([x, x], "takes 5 arguments, got 2"),
        ([x, x, 8, 1.0, 2.5 + 0j], "has type complex"),
        ([x, x, 1 << 40, 1.0, 1], "does not fit"),
        ([x, x.cpu(), 8, 1.0, 1], "not on a CUDA device"),
        ([x, x, x, 1.0, 1], "not a pointer"),
        ([x, x, "8", 1.0, 1], "has type str"),
    ):
        with pytest.raises(CudaError, match=words):
            kernel(grid=(1,), block=(8,), args=args)
    with pytest.raises(CudaError, match='extern "C"'):
        load_cuda(SOURCE).kernel("nothing")(grid=(1,), block=(1,))
    with pytest.raises(CudaError, match="block"):
        kernel(grid=(1,), block=(4096,), args=[x, x, 8, 1.0, 1])
