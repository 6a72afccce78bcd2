"""Run the chain's step and replay step on a GPU as one small kernel each: one more node per call in a captured graph.

The judge compiles it once for its children; each of them would need a tenth of a second. Without NVRTC, torch's
operations do the same in a dozen launches.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import torch

from evaluator.child.protocol import chain
from evaluator.child.warpwright_native import CompileError, CompilerMissing, CudaKernel, CudaModule, load_cuda

_THREADS = 128
_WORD = 8  # bytes of the largest
_given: list[CudaModule] = []  # this child's copy of the kernel that the judge compiled
_SOURCE = r"""
struct Targets {
  void* base[INPUTS];
  int end[INPUTS];  // of each one's columns; unused entries have none
  int bytes[INPUTS];
};
struct Column {
  // Values are loaded before the choice is known: that saves waiting for one load.
  long long where, read, addend, values[VALUES];
};
__device__ __forceinline__ Column column(const long long* rows, int count, int j)
{
  Column one = {rows[j], rows[count + j], rows[2 * count + j]};
#pragma unroll
  for (int i = 0; i < VALUES; ++i) one.values[i] = rows[(3 + i) * count + j];
  return one;
}
__device__ __forceinline__ void put(const Targets& targets, const Column& one, int pick, int j)
{
  void* base = targets.base[0];
  int bytes = targets.bytes[0];
#pragma unroll
  for (int i = 1; i < INPUTS; ++i) {
    const bool later = j >= targets.end[i - 1];
    base = later ? targets.base[i] : base;
    bytes = later ? targets.bytes[i] : bytes;
  }
  long long value = one.values[0];
#pragma unroll
  for (int i = 1; i < VALUES; ++i) value = pick == i ? one.values[i] : value;
  if (bytes == 4) ((int*)base)[one.where] = (int)value;
  else if (bytes == 2) ((short*)base)[one.where] = (short)value;
  else if (bytes == 1) ((unsigned char*)base)[one.where] = (unsigned char)value;
  else ((long long*)base)[one.where] = value;
}
template <class Word>
__device__ __forceinline__ void step(const Word* source, const Targets& targets, const long long* rows, int count)
{
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const Column one = column(rows, count, j);
  const unsigned long long mixed = (unsigned long long)(long long)source[one.read] * MIX;
  put(targets, one, (int)((((long long)mixed >> SHIFT) + one.addend) & (VALUES - 1)), j);
}
extern "C" __global__ void replay_step(long long* counts, const long long* rows, const Targets targets, int count)
{
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const unsigned long long now = (unsigned long long)counts[j]++;
  if (now == 0) return;
  const Column one = column(rows, count, j);
  put(targets, one, (int)((now * MIX * (2 * (unsigned long long)one.addend + 1)) >> REPLAY_SHIFT), j);
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
    """The inputs that a step changes, each dense, in the form that its kernel takes."""

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
            made.bytes[place] = min(_WORD, inputs[index].element_size())  # as `chain.element_bits` has them
            made.end[place] = span.stop
        return made


@functools.cache
def _kernel(name: str) -> CudaKernel | None:
    module = _module()
    return None if module is None else module.kernel(name)


@functools.cache
def _compiled() -> CudaModule | None:
    defines = {
        "MIX": f"{chain.MIX & (1 << 64) - 1}ULL", "SHIFT": chain.SHIFT, "VALUES": chain.VALUES,
        "INPUTS": chain.MOST_INPUTS, "REPLAY_SHIFT": chain.REPLAY_SHIFT,
    }  # fmt: skip
    try:
        return load_cuda(_SOURCE, defines=defines)
    except (CompileError, CompilerMissing):
        return None


def image() -> bytes | None:
    """Return the step compiled for the current device, or None without a compiler."""
    module = _compiled()
    return None if module is None else module.image


def use_image(compiled: bytes) -> None:
    """Launch this compiled `image` from now on."""
    if not _given:
        _given.append(CudaModule(compiled, "given"))


def is_ours(module: CudaModule) -> bool:
    """Return true for the judge's own kernels, which no Candidate made."""
    return module in _given or (_compiled.cache_info().currsize > 0 and module is _compiled())


def _module() -> CudaModule | None:
    return _given[0] if _given else _compiled()


class Steps:
    """The steps of a round: a replay step before the first call, a step before every other."""

    def __init__(self, link: chain.Link, calls: Sequence[Sequence[torch.Tensor]]) -> None:
        self._link, self._calls = link, calls
        self._counts = torch.zeros_like(link.coefficients[0])

    def begin(self) -> None:
        """Begin a round. Its first replay has the granted inputs."""
        self._counts.zero_()

    def before(self, index: int, last: Sequence[torch.Tensor]) -> None:
        """Change the inputs of call `index` by the tensors that the previous call returned."""
        inputs, link = self._calls[index], self._link
        source = self._counts if index == 0 else chain.element_bits(last[link.output])
        name = "replay_step" if index == 0 else f"step_{source.element_size()}"
        kernel = _kernel(name) if source.is_cuda else None
        if kernel is None:
            self._by_torch(index, last)
            return
        count = link.coefficients.shape[1]
        args = [source, link.coefficients, Targets.of(inputs, link), count]
        kernel(grid=[-(-count // _THREADS)], block=[_THREADS], args=args)

    def _by_torch(self, index: int, last: Sequence[torch.Tensor]) -> None:
        if index == 0:
            chain.replay_step(self._counts, self._calls[index], self._link)
        else:
            chain.step(last, self._calls[index], self._link)
