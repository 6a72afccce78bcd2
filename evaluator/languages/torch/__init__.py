"""PyTorch alone: nothing to compile before it runs."""

from __future__ import annotations

from evaluator.languages.allowed import AllowedNames
from evaluator.languages.base import LanguageAdapter
from evaluator.languages.cpp import CppAdapter
from evaluator.languages.niche import NicheRules, rules
from evaluator.types import DeviceKind, Language

_ATTRIBUTES = (
    "bool uint8 int8 int16 int32 int64 long half float double float16 bfloat16 float32 float64 complex64 complex128"
    " float8_e4m3fn float8_e5m2 Tensor Size device nn empty empty_like empty_strided zeros zeros_like ones"
    " ones_like full full_like cat tensor contiguous_format channels_last is_tensor finfo iinfo"
)


class TorchAdapter(LanguageAdapter):
    """Candidates that rearrange PyTorch's own operations. A model that is asked to improve one may go native."""

    language = Language.TORCH
    title = "PyTorch with native code where it pays"
    guide = CppAdapter.guide
    niches = NicheRules(
        memory=rules(("in-place", r"\w_\(|out=")),
        compute=rules(("matmul", r"matmul|linear|addmm|bmm|einsum|@"), ("fused-op", r"scaled_dot|rms_norm|layer_norm")),
        parallel=rules(("compiled", r"torch\.compile")),
    )
    allowed = AllowedNames(
        modules={"torch": "torch", "torch.nn": "nn"},
        members={("torch", "nn"): "nn"},
        attributes={"torch": frozenset(_ATTRIBUTES.split())},
        settable=(
            *("torch.backends", "torch._inductor.config", "torch._dynamo.config", "torch._functorch.config"),
            "torch.compiler.config",
        ),
    )

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return True

    def timed_on(self, kind: DeviceKind) -> bool:
        return True
