"""The Triton functions that generated kernels share. Only what a kernel uses is emitted.

The exact ones are accurate to one or two units in the last place of float32: Cephes' polynomial for tanh, a minimax fit
for log (at most 0.95 units). The quick ones are the hardware's, good for results that are rounded to 16 bits.
"""

from __future__ import annotations

PIECES: dict[str, tuple[tuple[str, ...], str]] = {
    "_exp": (
        (),
        '''@triton.jit
def _exp(x):
    """exp in float32: the product with log2(e) in two parts, so that large arguments keep their accuracy."""
    x = tl.where(x > 89.0, 89.0, tl.where(x < -104.5, -104.5, x))
    high = x * 1.4426950408889634
    low = tl.fma(x, 1.4426950408889634, -high) + x * 1.925963033500011e-08
    y = tl.exp2(high)
    return tl.where(y < float("inf"), y + y * (low * 0.6931471805599453), y)''',
    ),
    "_log": (
        (),
        '''@triton.jit
def _log(x):
    """The natural logarithm in float32, subnormals, zero, infinities and NaN included."""
    tiny = x < 1.1754943508222875e-38  # a smaller constant would make Triton compare in float64
    raw = tl.where(tiny, x * 8388608.0, x).to(tl.int32, bitcast=True)
    exponent = (raw - 0x3F2AAAAB) & -8388608  # what is left lies between 2/3 and 4/3
    k = tl.fma(exponent.to(tl.float32), 1.1920928955078125e-07, tl.where(tiny, -23.0, 0.0))
    m = (raw - exponent).to(tl.float32, bitcast=True) - 1.0
    p = tl.fma(m, -1.2893736e-1, 1.3986455e-1)
    p = tl.fma(p, m, -1.2183836e-1)
    p = tl.fma(p, m, 1.4005496e-1)
    p = tl.fma(p, m, -1.6680515e-1)
    p = tl.fma(p, m, 2.0010427e-1)
    p = tl.fma(p, m, -2.4999797e-1)
    p = tl.fma(p, m, 3.3333215e-1)
    p = tl.fma(p, m, -0.5)
    y = tl.fma(k, 0.6931471805599453, tl.fma(p, m * m, m))
    other = tl.where(x == 0.0, float("-inf"), tl.where(x == float("inf"), x, float("nan")))
    return tl.where((x > 0.0) & (x < float("inf")), y, other)''',
    ),
    "_log1p": (
        ("_log",),
        """@triton.jit
def _log1p(x):
    u = x + 1.0
    y = _log(u) + (x - (u - 1.0)) / u
    return tl.where((u == 1.0) | (x == float("inf")), x, tl.where(u == 0.0, float("-inf"), y))""",
    ),
    "_tanh": (
        ("_exp",),
        '''@triton.jit
def _tanh(x):
    """A polynomial near zero, exponentials elsewhere."""
    a = tl.abs(x)
    z = x * x
    p = tl.fma(z, -5.70498872745e-3, 2.06390887954e-2)
    p = tl.fma(p, z, -5.37397155531e-2)
    p = tl.fma(p, z, 1.33314422036e-1)
    p = tl.fma(p, z, -3.33332819422e-1)
    large = 1.0 - 2.0 / (_exp(a + a) + 1.0)
    return tl.where(a < 0.625, p * z * x + x, tl.where(x < 0, -large, large))''',
    ),
    "_quick_tanh": (
        (),
        '''@triton.jit
def _quick_tanh(x):
    """As exact as a result of 16 bits needs: a polynomial near zero, the hardware's exponential elsewhere."""
    a = tl.abs(x)
    z = x * x
    p = tl.fma(z, 1.33314422036e-1, -3.33332819422e-1)
    root = tl.rsqrt(tl.exp2(a * 2.8853900817779268) + 1.0)
    large = 1.0 - 2.0 * root * root
    return tl.where(a < 0.25, p * z * x + x, tl.where(x < 0, -large, large))''',
    ),
    "_expm1": (
        ("_tanh",),
        """@triton.jit
def _expm1(x):
    half = _tanh(tl.where(x > 1.0, 1.0, x) * 0.5)
    return tl.where(x > 1.0, _exp(x) - 1.0, 2.0 * half / (1.0 - half))""",
    ),
    "_sigmoid": (("_exp",), "@triton.jit\ndef _sigmoid(x):\n    return 1.0 / (1.0 + _exp(-x))"),
    "_silu": (("_exp",), "@triton.jit\ndef _silu(x):\n    return x / (1.0 + _exp(-x))"),
    "_float8_e4m3fn": (
        (),
        '''@triton.jit
def _float8_e4m3fn(x):
    """Round to float8; the hardware's conversion saturates, while what is too large is no number."""
    return tl.where(tl.abs(x) <= 464.0, x, float("nan")).to(tl.float8e4nv)''',
    ),
    "_max": (
        (),
        '''@triton.jit
def _max(a, b):
    """The larger one; a NaN wins."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)''',
    ),
    "_min": (
        (),
        '''@triton.jit
def _min(a, b):
    """The smaller one; a NaN wins."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)''',
    ),
}


def prelude(names: set[str]) -> str:
    """Return the functions in `names` and their dependencies, in order."""
    wanted: list[str] = []

    def add(name: str) -> None:
        needs, _ = PIECES[name]
        for need in needs:
            add(need)
        if name not in wanted:
            wanted.append(name)

    for name in sorted(names, key=list(PIECES).index):
        add(name)
    return "".join(PIECES[name][1] + "\n\n\n" for name in wanted)
