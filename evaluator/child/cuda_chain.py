"""The chain's step on a GPU: one small kernel, so that a captured graph holds one node more per call.

The judge compiles it once and gives it to its children, each of which would need a tenth of a second. Where NVRTC is
missing, torch's operations do the same in a dozen launches.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from evaluator.child import chain
from evaluator.child.warpwright_native import CompileError, CompilerMissing, CudaKernel, CudaModule, load_cuda

_THREADS = 128
_given: list[CudaModule] = []  # of this child: what the judge compiled
_SOURCE = r"""
template <class Word, class Element>
__device__ __forceinline__ void step(const Word* source, Element* target, const long long* rows, int count)
{
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const long long where = rows[j], read = rows[count + j], addend = rows[2 * count + j];
  long long values[VALUES];  // loaded before it is known which one is wanted: a load less to wait for
#pragma unroll
  for (int i = 0; i < VALUES; ++i) values[i] = rows[(3 + i) * count + j];
  const unsigned long long mixed = (unsigned long long)(long long)source[read] * MIX;
  const int pick = (int)((((long long)mixed >> SHIFT) + addend) & (VALUES - 1));
  long long value = values[0];
#pragma unroll
  for (int i = 1; i < VALUES; ++i) value = pick == i ? values[i] : value;
  target[where] = (Element)value;
}
#define STEP(NAME, WORD, ELEMENT)                                                                      \
extern "C" __global__ void NAME(const WORD* source, ELEMENT* target, const long long* rows, int count) \
{                                                                                                      \
  step(source, target, rows, count);                                                                   \
}
#define STEPS(SUFFIX, WORD)                        \
  STEP(step_##SUFFIX##_1, WORD, unsigned char)     \
  STEP(step_##SUFFIX##_2, WORD, short)             \
  STEP(step_##SUFFIX##_4, WORD, int)               \
  STEP(step_##SUFFIX##_8, WORD, long long)
STEPS(1, unsigned char)
STEPS(2, short)
STEPS(4, int)
STEPS(8, long long)
"""


@functools.cache
def _kernel(source_bytes: int, target_bytes: int) -> CudaKernel | None:
    module = _module()
    return None if module is None else module.kernel(f"step_{source_bytes}_{target_bytes}")


@functools.cache
def _compiled() -> CudaModule | None:
    defines = {"MIX": f"{chain.MIX & (1 << 64) - 1}ULL", "SHIFT": chain.SHIFT, "VALUES": chain.VALUES}
    try:
        return load_cuda(_SOURCE, defines=defines)
    except (CompileError, CompilerMissing):
        return None


def image() -> bytes | None:
    """The step compiled for the current device; None where there is no compiler."""
    module = _compiled()
    return None if module is None else module.image


def use(compiled: bytes) -> None:
    """Launch this, an `image`, from now on."""
    if not _given:
        _given.append(CudaModule(compiled, "given"))


def _module() -> CudaModule | None:
    return _given[0] if _given else _compiled()


def step(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], link: chain.Link) -> None:
    """See `chain.step`."""
    source, target = chain.words(outputs[link.output]), chain.words(inputs[link.input])
    kernel = _kernel(source.element_size(), target.element_size())
    if kernel is None:
        chain.step(outputs, inputs, link)
        return
    count = link.coefficients.shape[1]
    kernel(grid=[-(-count // _THREADS)], block=[_THREADS], args=[source, target, link.coefficients, count])
