"""Ten and more correct kernels (mutants/*.py) and what may be wrong with them: named substitutions in their source.

Each bug is a slip that people and models make. `source` gives the mutant's text; every one must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluator.languages import detect
from evaluator.types import Candidate

HERE = Path(__file__).parent / "mutants"


@dataclass(frozen=True, slots=True)
class Bug:
    """`old` stands in the kernel's source exactly once (or `count` times) and becomes `new`."""

    kernel: str
    name: str
    old: str
    new: str
    count: int = 1

    @property
    def source(self) -> str:
        """The mutant's text. ValueError where the substitution does not fit the kernel any more."""
        text = original(self.kernel)
        if text.count(self.old) != self.count:
            raise ValueError(f"{self.kernel}: {self.old!r} stands {text.count(self.old)} times in it")
        return text.replace(self.old, self.new)

    @property
    def candidate(self) -> Candidate:
        return as_candidate(self.source)


def original(kernel: str) -> str:
    return (HERE / f"{kernel}.py").read_text(encoding="utf-8")


def as_candidate(source: str) -> Candidate:
    return Candidate(source=source, language=detect(source), proposer="test")


def _bugs(kernel: str, *found: tuple[str, str, str] | tuple[str, str, str, int]) -> list[Bug]:
    return [Bug(kernel, *entry) for entry in found]


_RMSNORM = _bugs(
    "rmsnorm",
    ("last partial block left out", "for (; i < n; i++) sum += p[i] * p[i];", ""),
    ("one lane too few", "for (long j = 0; j < 16; j++) sum +=", "for (long j = 0; j < 15; j++) sum +="),
    ("one lane twice", "float sum = 0;", "float sum = lanes[0];"),
    ("reads a block too far", "i + 16 <= n", "i < n"),
    ("epsilon of 1e-5", "+ eps)", "+ 1e-5f)"),
    ("epsilon left out", " + eps)", ")"),
    ("epsilon outside the root", "1.0f / std::sqrt(sum / n + eps)", "1.0f / (std::sqrt(sum / n) + eps)"),
    ("divides by n - 1", "sum / n", "sum / (n - 1)"),
    ("gain left out", " * scale * w[j]", " * scale"),
    ("gain of the wrong column", "w[j]", "w[(j + 1) % n]"),
    ("gain twice where positive", "w[j]", "(w[j] > 1 ? w[j] * 1.0001f : w[j])"),
    ("last column not written", "j < n; j++) q[j]", "j < n - 1; j++) q[j]"),
    ("last row not written", "r < rows; r++", "r < rows - (rows > 1); r++"),
    ("wrong stride for the output", "y + r * n", "y + r * (n - 1)"),
    ("lanes not cleared between rows", "float lanes[16] = {0};", "static float lanes[16] = {0};"),
    ("sums in bfloat16", "float sum = 0;", "float sum = 0; for (float& l : lanes) l = (float)(int)(l * 256) / 256;"),
    ("wrong for an odd number of rows", "float sum = 0;", "float sum = rows % 2 && r == rows - 1 ? 1e-3f : 0;"),
    ("wrong for a single row", "float sum = 0;", "float sum = rows == 1 ? 1e-2f : 0;"),
    ("NaN counted as nothing", "for (; i < n; i++) sum", "if (sum != sum) sum = 0;\n    for (; i < n; i++) sum"),
    ("overflow clamped", "float scale", "if (sum > 1e30f) sum = 1e30f;\n    float scale"),
    ("infinite input becomes zero", "q[j] = p[j]", "q[j] = std::isinf(p[j]) ? 0 : p[j]"),
    ("sign of negative inputs lost in a tail", "q[j] = p[j]", "q[j] = (j >= n / 16 * 16 ? std::fabs(p[j]) : p[j])"),
    (
        "gain folded at the first call",
        "(x, self.weight, y)",
        "(x, self.__dict__.setdefault('kept', self.weight.data.clone()), y)",
    ),
    (
        "scale of the row before",
        "float scale = 1.0f / std::sqrt(sum / n + eps);",
        "static float next; float now = 1.0f / std::sqrt(sum / n + eps), scale = r ? next : now; next = now;",
    ),
    (
        "output of the call before",
        "y = torch.empty_like(x)",
        "y = self.__dict__.setdefault('kept', {}).setdefault(x.shape, torch.empty_like(x))",
    ),
)

_SOFTMAX = _bugs(
    "softmax",
    ("maximum not subtracted", "(p[i] - top) / temperature", "p[i] / temperature"),
    ("maximum of the first half", "i < n; i++) top", "i < (n + 1) / 2; i++) top"),
    ("maximum starts at zero", "float top = p[0]", "float top = 0"),
    (
        "maximum of absolute values",
        "p[i] > top || p[i] != p[i] ? p[i]",
        "std::fabs(p[i]) > top || p[i] != p[i] ? std::fabs(p[i])",
    ),
    ("temperature left out", " / temperature", ""),
    ("temperature multiplied", ") / temperature", ") * temperature"),
    ("last element not in the sum", "sum += q[i];", "if (i < n - 1 || n == 1) sum += q[i];"),
    ("sum not cleared between rows", "float sum = 0;", "static float sum = 0; if (r == 0) sum = 0;"),
    (
        "rounded exponentials",
        "q[i] = std::exp((p[i] - top) / temperature);",
        "q[i] = (float)(_Float16)std::exp((p[i] - top) / temperature);",
    ),
    ("small exponentials flushed", "sum += q[i];", "if (q[i] < 1e-3f) q[i] = 0; sum += q[i];"),
    ("last column not normalised", "i < n; i++) q[i] *= scale", "i < n - 1; i++) q[i] *= scale"),
    ("wrong axis", "const float* p = x + r * n;", "const float* p = x + (rows - 1 - r) * n;"),
    ("guards the sum with an epsilon", "1.0f / sum", "1.0f / (sum + 1e-4f)"),
)

_LINEAR = _bugs(
    "linear",
    ("bias left out", " + b[c]", ""),
    ("bias of the wrong column", "b[c]", "b[c0]"),
    ("last odd product left out", "for (; i < k; i++) even += x[r * k + i] * w[c * k + i];", "if (0) {}"),
    ("last tile of rows left out", "r0 < m; r0 += T", "r0 + T <= m; r0 += T"),
    ("last tile of columns left out", "c0 < n; c0 += T", "c0 + T < n; c0 += T"),
    ("weight not transposed", "w[c * k + i + 1]", "w[(i + 1) * n + c]"),
    ("even and odd not added", "even + odd + b[c]", "even + b[c]"),
    ("odd products subtracted", "even + odd + b[c]", "even - odd + b[c]"),
    ("stride of the output", "y[r * n + c]", "y[r * k + c]"),
    (
        "products in float16",
        "even += x[r * k + i] * w[c * k + i];\n            odd",
        "even += (float)(_Float16)(x[r * k + i] * w[c * k + i]);\n            odd",
    ),
    ("accumulated in float16", "float even = 0, odd = 0;", "_Float16 even = 0, odd = 0;"),
    ("tile edge for few rows", "std::min(r0 + T, m)", "std::min(r0 + T, m > 1 ? m - (m % T == 1) : m)"),
    (
        "weight folded at the first call",
        "(x, self.weight, self.bias, y)",
        "(x, self.__dict__.setdefault('kept', self.weight.data.clone()), self.bias, y)",
    ),
    (
        "zeros skipped although NaN times zero is NaN",
        "even += x[r * k + i] * w[c * k + i];\n            odd",
        "if (w[c * k + i] == w[c * k + i] && x[r * k + i] == x[r * k + i]) even += x[r * k + i] * w[c * k + i];\n            odd",
    ),
)

_BIAS_ACT = _bugs(
    "bias_act",
    ("bias left out", "* scale[j] + bias[j]", "* scale[j]"),
    ("mean left out", "(x[r * n + j] - mean[j])", "x[r * n + j]"),
    ("scale before the mean", "(x[r * n + j] - mean[j]) * scale[j]", "(x[r * n + j] * scale[j] - mean[j])"),
    ("bias of the first column", "bias[j]", "bias[0]"),
    ("bias by row", "bias[j]", "bias[r % n]"),
    ("sigmoid alone", "return v / (1.0f + std::exp(-v))", "return 1.0f / (1.0f + std::exp(-v))"),
    ("sign in the exponent", "std::exp(-v)", "std::exp(v)"),
    ("hard sigmoid", "v / (1.0f + std::exp(-v))", "v * std::fmin(std::fmax(v / 6.0f + 0.5f, 0.0f), 1.0f)"),
    ("exponent clamped", "std::exp(-v)", "std::exp(-std::fmax(v, -8.0f))"),
    ("NaN becomes zero", "return v /", "if (v != v) return 0; return v /"),
    (
        "wrong for negative inputs below minus two",
        "return v /",
        "if (v < -2) return 0.999f * v / (1.0f + std::exp(-v)); return v /",
    ),
)
_ARGMAX = _bugs(
    "argmax",
    ("maximum of absolute values", "return a > b", "return std::fabs(a) > std::fabs(b)"),
    ("smallest", "return a > b", "return a < b"),
    ("last element not looked at", "i < to; i++", "i < to - 1; i++"),
    (
        "right half without its offset",
        "y[r] = better(p[right], p[left]) ? right : left",
        "y[r] = better(p[right], p[left]) ? right - half : left",
    ),
    ("always the left half", "? right : left", "? left : left"),
    ("NaN never wins", " || (std::isnan(a) && !std::isnan(b))", ""),
    ("largest starts at zero", "better(p[i], p[at])) at = i", "better(p[i], p[at] < 0 ? 0.0f : p[at])) at = i"),
    ("index of the row before", "const float* p = x + r * n;", "const float* p = x + (r ? r - 1 : 0) * n;"),
    ("small differences lost", "return a > b", "return a > b + 1e-3f"),
)

_MOMENTS = _bugs(
    "moments",
    ("variance with n - 1", "squares / n", "squares / (n - 1)"),
    ("mean of whole blocks", "for (; i < n; i++) sum += p[i];", ""),
    ("variance by squares of the mean", "(p[j] - middle) * (p[j] - middle)", "p[j] * p[j] - middle * middle"),
    ("deviation, not variance", "var[r] = squares / n", "var[r] = __builtin_sqrtf(squares / n)"),
    ("outputs swapped", "return mean, var", "return var, mean"),
    ("lanes not cleared", "float lanes[8] = {0};", "static float lanes[8] = {0};"),
    (
        "mean of the row before",
        "(p[j] - middle) * (p[j] - middle)",
        "(p[j] - (r ? mean[r - 1] : middle)) * (p[j] - middle)",
    ),
    ("last row's variance not written", "var[r] = ", "if (r + 1 < rows || rows == 1) var[r] = "),
    ("squares in float16", "float squares = 0;", "_Float16 squares = 0;"),
    (
        "mean rounded to bfloat16 before",
        "float middle = sum / n;",
        "float middle = sum / n; middle = (float)(long)(middle * 128) / 128;",
    ),
)

_RUNNING_MEAN = _bugs(
    "running_mean",
    ("buffer not moved", "mean[i] = 0.9f * mean[i] + 0.1f * scratch[i];", ""),
    ("momentum the wrong way round", "0.9f * mean[i] + 0.1f * scratch[i]", "0.1f * mean[i] + 0.9f * scratch[i]"),
    ("buffer moved twice", "mean[i] = 0.9f", "mean[i] = 0.9f * mean[i] + 0.1f * scratch[i];\n    mean[i] = 0.9f"),
    ("scratch not cleared", "for (long i = 0; i < n; i++) scratch[i] = 0;", ""),
    (
        "last row left out of the mean",
        "r < rows; r++)\n    for (long i = 0; i < n; i++) scratch",
        "r < rows - 1; r++)\n    for (long i = 0; i < n; i++) scratch",
    ),
    ("subtracts the running mean", "- scratch[i];", "- mean[i];"),
    ("divides by one more", "scratch[i] /= rows", "scratch[i] /= rows + 1"),
    ("last channel's buffer forgotten", "mean[i] = 0.9f", "if (i < n - 1) mean[i] = 0.9f"),
)

_BF16 = _bugs(
    "rmsnorm_bf16",
    ("truncates where it should round", "(b + 0x7fff + ((b >> 16) & 1)) >> 16", "b >> 16"),
    ("squares in bfloat16", "sum += wide(p[i]) * wide(p[i])", "sum = wide(narrow(sum + wide(p[i]) * wide(p[i])))"),
    ("gain left out", " * wide(w[i])", ""),
    ("epsilon left out", " + eps)", ")"),
    ("half of a row", "i < n; i++) sum", "i < n / 2; i++) sum"),
    (
        "read as float16",
        "uint32_t b = (uint32_t)h << 16;",
        "_Float16 t; std::memcpy(&t, &h, 2); float u = t; uint32_t b; std::memcpy(&b, &u, 4);",
    ),
    (
        "scale rounded to four bits",
        "float scale = 1.0f / std::sqrt(sum / n + eps);",
        "float scale = 1.0f / std::sqrt(sum / n + eps); scale = (float)(long)(scale * 16) / 16;",
    ),
    ("NaN becomes infinity", "if (f != f) return 0x7fc0;", "if (f != f) return 0x7f80;"),
    ("last column not written", "i < n; i++) y", "i < n - 1; i++) y"),
)

_CUMSUM = _bugs(
    "cumsum",
    ("carry left out", "carry + sum", "sum"),
    ("carry twice", "carry += sum;", "carry += sum + sum;"),
    ("carry not cleared between rows", "float carry = 0;", "static thread_local float carry = 0;"),
    ("block off by one", "std::min(start + 64, n)", "std::min(start + 63, n)"),
    ("last block left out", "start < n; start += 64", "start + 64 <= n; start += 64"),
    (
        "exclusive sum",
        "sum += x[r * n + i];\n        y[r * n + i] = carry + sum;",
        "y[r * n + i] = carry + sum;\n        sum += x[r * n + i];",
    ),
    ("threads overlap", "rows_of, x, y, 0, middle, n", "rows_of, x, y, 0, middle - (middle > 0), n"),
    (
        "reads what another thread writes",
        "rows_of(x, y, middle, rows, n);",
        "rows_of(rows > 4 ? y : x, y, middle, rows, n);",
    ),
    ("sums in float16", "float sum = 0;", "_Float16 sum = 0;"),
)

_EMBEDDING = _bugs(
    "embedding",
    ("last of a bag left out", "j < each; j++", "j < each - 1; j++"),
    ("output not cleared", "y[b * width + i] = 0;", ";"),
    ("index off by one", "index[b * each + j] * width", "(index[b * each + j] + 1) % 200 * width"),
    ("indices of the first bag", "index[b * each + j]", "index[j]"),
    (
        "narrow indices",
        "index[b * each + j]",
        "(signed char)index[b * each + j] % 128 * (index[b * each + j] < 128) + 0",
    ),
    ("mean, not sum", "y[b * width + i] += row[i]", "y[b * width + i] += row[i] / each"),
    (
        "table kept from the first call",
        "(index, self.table, y)",
        "(index, self.__dict__.setdefault('kept', self.table.data.clone()), y)",
    ),
    (
        "last column not written",
        "i < width; i++) y[b * width + i] += row[i]",
        "i < width - 1; i++) y[b * width + i] += row[i]",
    ),
)

_GELU = _bugs(
    "gelu",
    (
        "tanh form",
        "0.5f * v * (1.0f + std::erf(v * 0.70710678118654752f))",
        "0.5f * v * (1.0f + std::tanh(0.7978845608f * (v + 0.044715f * v * v * v)))",
    ),
    ("only the first chunk", "start < n; start += 4096", "start < 1; start += 4096"),
    ("chunk off by one", "std::min(start + 4096, n)", "std::min(start + 4095, n)"),
    ("last chunk left out unless whole", "start < n; start += 4096", "start + 4096 <= n || start == 0; start += 4096"),
    ("wrong constant", "0.70710678118654752f", "0.7071f"),
    ("no half", "0.5f * v", "v"),
    ("sign", "1.0f + std::erf", "1.0f - std::erf"),
    ("identity above three", "return 0.5f", "if (v > 3) return v; return 0.5f"),
    ("zero below minus three", "return 0.5f", "if (v < -3) return 0; return 0.5f"),
    ("denormals flushed", "return 0.5f", "if (std::fabs(v) < 1.17549435e-38f) return 0; return 0.5f"),
    ("wrong in the second chunk", "y[i] = gelu(x[i])", "y[i] = gelu(i >= 4096 ? x[i] * 1.00001f : x[i])"),
    ("NaN becomes zero", "return 0.5f", "if (v != v) return 0; return 0.5f"),
)

_TRITON_SOFTMAX = _bugs(
    "triton_softmax",
    ("masked lanes count as zero", 'other=-float("inf")', "other=0.0"),
    ("maximum not subtracted", "tl.exp(v - top)", "tl.exp(v)"),
    ("off by one mask", "inside = columns < n", "inside = columns < n - 1"),
    ("stride is the block", "x + row * n", "x + row * BLOCK"),
    ("temperature after the maximum", "tl.exp(v - top)", "tl.exp(v - top * temperature)"),
)

_TRITON_BIAS = _bugs(
    "triton_bias_act",
    ("last block left out", "triton.cdiv(n, 32)", "n // 32"),
    ("bias left out", "(v - m) * s + b", "(v - m) * s"),
    ("column without its block", "tl.program_id(1) * BLOCK + tl.arange", "tl.arange"),
    ("float16 in between", "v = (v - m) * s + b", "v = ((v - m) * s + b).to(tl.float16).to(tl.float32)"),
)

BUGS: tuple[Bug, ...] = (
    *_RMSNORM, *_SOFTMAX, *_LINEAR, *_BIAS_ACT, *_ARGMAX, *_MOMENTS, *_RUNNING_MEAN, *_BF16, *_CUMSUM, *_EMBEDDING,
    *_GELU, *_TRITON_SOFTMAX, *_TRITON_BIAS,
)  # fmt: skip
KERNELS: tuple[str, ...] = tuple(dict.fromkeys(bug.kernel for bug in BUGS))
