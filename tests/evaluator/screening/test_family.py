"""Families of operations, read from references."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.screening.family import Family, family_of

EXAMPLES = Path(__file__).parents[3] / "examples" / "problems"
EXPECTED = {
    "bias_gelu": Family.ACTIVATION,
    "cross_entropy": Family.LOSS,
    "decode_attention": Family.ATTENTION,
    "gated_mlp": Family.MATMUL,
    "layernorm": Family.NORMALISATION,
    "rmsnorm_linear": Family.MATMUL,
    "rmsnorm_residual": Family.NORMALISATION,
    "rope": Family.ELEMENTWISE,
    "softmax_scale_mask": Family.SOFTMAX,
    "swiglu": Family.ACTIVATION,
}


def test_every_example_has_its_family() -> None:
    found = {path.stem: family_of(path.read_text(encoding="utf-8")) for path in EXAMPLES.glob("*.py")}
    assert found.items() >= EXPECTED.items()
    assert Family.OTHER not in found.values()


@pytest.mark.parametrize(
    ("forward", "family"),
    [
        ("nn.Conv2d(3, 4, 3)(x)", Family.CONVOLUTION),
        ("F.conv_transpose1d(x, w)", Family.CONVOLUTION),
        ("F.scaled_dot_product_attention(x, x, x)", Family.ATTENTION),
        ("x @ w", Family.MATMUL),
        ("F.mse_loss(x, y)", Family.LOSS),
        ("nn.GroupNorm(2, 4)(x)", Family.NORMALISATION),
        ("F.max_pool2d(x, 2)", Family.POOLING),
        ("x.cumsum(-1)", Family.SCAN),
        ("x.amax(-1)", Family.REDUCTION),
        ("torch.index_select(x, 0, i)", Family.INDEXING),
        ("x * 2 + 1", Family.ELEMENTWISE),
        ("x.permute(1, 0).contiguous()", Family.LAYOUT),
        ("x", Family.OTHER),
        ("mine(x)", Family.OTHER),
        ("max(sum([1]), 2)", Family.OTHER),
        ("convert(x)", Family.OTHER),
        ("(", Family.OTHER),
    ],
)
def test_the_first_family_that_fits(forward: str, family: Family) -> None:
    assert family_of(f"class Model:\n    def forward(self, x):\n        return {forward}\n") is family


def test_how_inputs_are_made_does_not_count() -> None:
    source = "def reference(x):\n    return x + 1\n\n\ndef get_inputs():\n    return [torch.randn(4, 4).softmax(-1)]\n"
    assert family_of(source) is Family.ELEMENTWISE
