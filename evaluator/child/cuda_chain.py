"""The chain's step on a GPU: one small kernel, so that a captured graph holds one node more per call.

The judge compiles it once and gives it to its children, each of which would need a tenth of a second. Where NVRTC is
missing, torch's operations do the same in a dozen launches.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import torch

from evaluator.child import chain
from evaluator.child.warpwright_native import CompileError, CompilerMissing, CudaKernel, CudaModule, load_cuda

_THREADS = 128
_WORD = 8  # bytes of the largest
_given: list[CudaModule] = []  # of this child: what the judge compiled
_SOURCE = r"""
struct Targets {
  void* base[INPUTS];
  int end[INPUTS];  // of each one's columns; of none that is not there
  int bytes[INPUTS];
};
template <class Word>
__device__ __forceinline__ void step(const Word* source, const Targets& targets, const long long* rows, int count)
{
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const long long where = rows[j], read = rows[count + j], addend = rows[2 * count + j];
  long long values[VALUES];  // loaded before it is known which one is wanted: a load less to wait for
#pragma unroll
  for (int i = 0; i < VALUES; ++i) values[i] = rows[(3 + i) * count + j];
  void* base = targets.base[0];
  int bytes = targets.bytes[0];
#pragma unroll
  for (int i = 1; i < INPUTS; ++i) {
    const bool later = j >= targets.end[i - 1];
    base = later ? targets.base[i] : base;
    bytes = later ? targets.bytes[i] : bytes;
  }
  const unsigned long long mixed = (unsigned long long)(long long)source[read] * MIX;
  const int pick = (int)((((long long)mixed >> SHIFT) + addend) & (VALUES - 1));
  long long value = values[0];
#pragma unroll
  for (int i = 1; i < VALUES; ++i) value = pick == i ? values[i] : value;
  if (bytes == 4) ((int*)base)[where] = (int)value;
  else if (bytes == 2) ((short*)base)[where] = (short)value;
  else if (bytes == 1) ((unsigned char*)base)[where] = (unsigned char)value;
  else ((long long*)base)[where] = value;
}
#define STEP(NAME, WORD)                                                                                  \
extern "C" __global__ void NAME(const WORD* source, const long long* rows, const Targets targets, int count) \
{                                                                                                         \
  step(source, targets, rows, count);                                                                     \
}
STEP(step_1, unsigned char)
STEP(step_2, short)
STEP(step_4, int)
STEP(step_8, long long)
"""


class Targets(ctypes.Structure):
    """The inputs that a step changes, each dense, as its kernel takes them."""

    _fields_ = (
        ("base", ctypes.c_void_p * chain.MOST_INPUTS),
        ("end", ctypes.c_int * chain.MOST_INPUTS),
        ("bytes", ctypes.c_int * chain.MOST_INPUTS),
    )

    @classmethod
    def of(cls, inputs: Sequence[torch.Tensor], link: chain.Link) -> Targets:
        made = cls()
        made.end[:] = [link.spans[-1].stop] * chain.MOST_INPUTS
        for place, (index, span) in enumerate(zip(link.inputs, link.spans, strict=True)):
            made.base[place] = inputs[index].data_ptr()
            made.bytes[place] = min(_WORD, inputs[index].element_size())  # as `chain.words` has them
            made.end[place] = span.stop
        return made


@functools.cache
def _kernel(source_bytes: int) -> CudaKernel | None:
    module = _module()
    return None if module is None else module.kernel(f"step_{source_bytes}")


@functools.cache
def _compiled() -> CudaModule | None:
    defines = {
        "MIX": f"{chain.MIX & (1 << 64) - 1}ULL", "SHIFT": chain.SHIFT, "VALUES": chain.VALUES,
        "INPUTS": chain.MOST_INPUTS,
    }  # fmt: skip
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
    source = chain.words(outputs[link.output])
    kernel = _kernel(source.element_size())
    if kernel is None:
        chain.step(outputs, inputs, link)
        return
    count = link.coefficients.shape[1]
    args = [source, link.coefficients, Targets.of(inputs, link), count]
    kernel(grid=[-(-count // _THREADS)], block=[_THREADS], args=args)
