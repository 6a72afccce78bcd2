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
    " ones_like full full_like rand randint randn matmul bmm mm addmm einsum cat tensor"
    " contiguous_format channels_last is_tensor finfo iinfo"
)
_FUNCTIONS = (
    "linear gelu silu relu sigmoid tanh softplus softmax log_softmax layer_norm group_norm rms_norm embedding pad"
    " scaled_dot_product_attention conv1d conv2d"
)
_OF_MODULES = "in_features out_features normalized_shape num_groups num_channels multi_processor_count"


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
        modules={"torch": "torch", "torch.nn": "nn", "torch.nn.functional": "functional"},
        members={("torch", "nn"): "nn", ("torch.nn", "functional"): "functional"},
        attributes={
            "torch": frozenset(_ATTRIBUTES.split()),
            "torch.cuda": frozenset(("get_device_properties",)),
            "functional": frozenset(_FUNCTIONS.split()),
        },
        submodules={("torch", "nn"): "nn", ("torch", "cuda"): "torch.cuda"},
        values=frozenset(_OF_MODULES.split()),
        settable=(
            *("torch.backends", "torch._inductor.config", "torch._dynamo.config", "torch._functorch.config"),
            "torch.compiler.config",
        ),
    )

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return True

    def timed_on(self, kind: DeviceKind) -> bool:
        return True
