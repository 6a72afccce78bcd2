"""The Triton functions that generated kernels share. Only what a kernel uses is emitted.

The exact ones are accurate to one or two units in the last place of float32 (Cephes' polynomials for log and tanh); the
quick ones are the hardware's, good for results that are rounded to 16 bits.
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
    tiny = x < 1.17549435e-38
    scaled = tl.where(tiny, x * 8388608.0, x)
    raw = scaled.to(tl.int32, bitcast=True)
    m = ((raw & 0x007FFFFF) | 0x3F000000).to(tl.float32, bitcast=True)
    low = m < 0.7071067811865476
    k = ((raw >> 23) - 126 - tl.where(tiny, 23, 0) - tl.where(low, 1, 0)).to(tl.float32)
    m = tl.where(low, m + m, m) - 1.0
    z = m * m
    p = tl.fma(m, 7.0376836292e-2, -1.1514610310e-1)
    p = tl.fma(p, m, 1.1676998740e-1)
    p = tl.fma(p, m, -1.2420140846e-1)
    p = tl.fma(p, m, 1.4249322787e-1)
    p = tl.fma(p, m, -1.6668057665e-1)
    p = tl.fma(p, m, 2.0000714765e-1)
    p = tl.fma(p, m, -2.4999993993e-1)
    p = tl.fma(p, m, 3.3333331174e-1)
    y = p * m * z - k * 2.12194440e-4 - 0.5 * z
    y = m + y + k * 0.693359375
    y = tl.where(x == 0.0, float("-inf"), tl.where(x == float("inf"), x, y))
    return tl.where((x < 0.0) | (x != x), float("nan"), y)''',
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
