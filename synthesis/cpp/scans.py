"""The C++ text for values that depend on their place in a row: scans, and the first places of extrema."""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

from collections.abc import Collection

from synthesis.errors import Unsupported
from synthesis.expr import Expr
from synthesis.graph.nodes import BACK
from synthesis.kernel import Kernel

SCAN_PIECES: dict[str, tuple[tuple[str, ...], str]] = {
    "quads": (
        (),
        """typedef double Q __attribute__((vector_size(32)));                     // four doubles
INLINE Q quad(double x) { return x - Q{}; }
#if defined(__AVX512F__) && VECTOR == 16                                // in registers: halves of a vector in memory stall its load
INLINE __m128 fourth(V v, int q) { return q < 2 ? (q ? _mm512_extractf32x4_ps((__m512)v, 1) : _mm512_castps512_ps128((__m512)v)) : (q > 2 ? _mm512_extractf32x4_ps((__m512)v, 3) : _mm512_extractf32x4_ps((__m512)v, 2)); }
INLINE V joined(const __m128* p) { return (V)_mm512_castpd_ps(_mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_castps_pd(_mm256_insertf128_ps(_mm256_castps128_ps256(p[0]), p[1], 1))), _mm256_castps_pd(_mm256_insertf128_ps(_mm256_castps128_ps256(p[2]), p[3], 1)), 1)); }
#elif defined(__AVX__) && VECTOR == 8
INLINE __m128 fourth(V v, int q) { return q ? _mm256_extractf128_ps((__m256)v, 1) : _mm256_castps256_ps128((__m256)v); }
INLINE V joined(const __m128* p) { return (V)_mm256_insertf128_ps(_mm256_castps128_ps256(p[0]), p[1], 1); }
#elif defined(__AVX__) && VECTOR == 4
INLINE __m128 fourth(V v, int) { return (__m128)v; }
INLINE V joined(const __m128* p) { return (V)p[0]; }
#endif
#if defined(__AVX__)
INLINE Q doubles(V v, int q) { return (Q)_mm256_cvtps_pd(fourth(v, q)); }
INLINE V floats(const Q* x) { __m128 p[W / 4]; for (int q = 0; q < W / 4; ++q) p[q] = _mm256_cvtpd_ps((__m256d)x[q]); return joined(p); }
#else
INLINE Q doubles(V v, int q) { return Q{v[4 * q], v[4 * q + 1], v[4 * q + 2], v[4 * q + 3]}; }
INLINE V floats(const Q* x) { V v; for (int i = 0; i < W; ++i) v[i] = float(x[i / 4][i % 4]); return v; }
#endif
struct Plus { static constexpr double NONE = 0; static Q LAMBDA of(Q a, Q b) { return a + b; } };
struct Times { static constexpr double NONE = 1; static Q LAMBDA of(Q a, Q b) { return a * b; } };
template <int SIGN> struct Farthest {                                   // a NaN stays, as in the reference
  static constexpr double NONE = -SIGN * std::numeric_limits<double>::infinity();
  static Q LAMBDA of(Q a, Q b) { return ((SIGN > 0 ? a > b : a < b) | (a != a)) ? a : b; }
};""",
    ),
    "turned_round": (
        (),
        "INLINE V turned_round(V v) { V r; for (int i = 0; i < W; ++i) r[i] = v[W - 1 - i]; return r; }",
    ),
    "load_back": (
        ("turned_round",),
        """INLINE V load_back(Whole m, const float* p) { return turned_round(load(m, p - W + 1)); }
INLINE V load_back(Tail t, const float* p) { V v{}; for (int i = 0; i < t.count; ++i) v[i] = p[-i]; return v; }""",
    ),
    "Scan": (
        ("quads", "select", "turned_round"),
        """template <class OP, bool BACK> struct Scan {                            // of all elements up to each one, in doubles
  Q carry = quad(OP::NONE);
  template <class A> V LAMBDA next(A m, V v) {
    if constexpr (std::is_same_v<A, Tail>) v = select(lanes(m), v, splat(float(OP::NONE)));
    if constexpr (BACK) v = turned_round(v);
    Q part[W / 4];
    for (int q = 0; q < W / 4; ++q) part[q] = prefixes(doubles(v, q));
    for (int q = 1; q < W / 4; q += 2) part[q] = OP::of(last(part[q - 1]), part[q]);  // two at a time: a shorter chain
    for (int q = 0; q < W / 4; q += 2) {
      const int end = q + 1 < W / 4 ? q + 1 : q;
      const Q all = last(part[end]);
      for (int k = q; k <= end; ++k) part[k] = OP::of(carry, part[k]);
      carry = OP::of(carry, all);
    }
    v = floats(part);
    return BACK ? turned_round(v) : v;
  }
  static Q LAMBDA prefixes(Q x) {
    x = OP::of(Q{OP::NONE, x[0], x[1], x[2]}, x);
    return OP::of(Q{OP::NONE, OP::NONE, x[0], x[1]}, x);
  }
  static Q LAMBDA last(Q x) { return Q{x[3], x[3], x[3], x[3]}; }
};
// f(j, mask, u) as in sweep, from the end of [begin, end): the tail comes first.
template <int N = UNROLL, class F> INLINE void sweep_back(int64_t begin, int64_t end, F&& f) {
  const int64_t whole = begin + (end - begin) / W * W;
  int64_t j = whole;
  if (j < end) f(j, Tail{end - j}, std::integral_constant<int, 0>{});
  for (; j - W * N >= begin; j -= W * N)
    unrolled(std::make_integer_sequence<int, N>{}, [&](auto u) LAMBDA { f(j - (u + 1) * W, Whole{}, u); });
  for (; j > begin; j -= W) f(j - W, Whole{}, std::integral_constant<int, 0>{});
}""",
    ),
    "LaneScan": (
        ("sweep_strip", "quads"),
        """template <class OP> struct LaneScan {                                   // a scan in each lane
  alignas(64) double total[STRIP];                                     // lanes behind the width hold anything
  explicit LAMBDA LaneScan(int64_t width) { for (int64_t i = 0; i < whole_vectors(width); ++i) total[i] = OP::NONE; }
  V LAMBDA next(int64_t i, V v) {
    Q part[W / 4];
    std::memcpy(part, total + i, sizeof part);
    for (int q = 0; q < W / 4; ++q) part[q] = OP::of(part[q], doubles(v, q));
    std::memcpy(total + i, part, sizeof part);
    return floats(part);
  }
};
template <int N = UNROLL, class F> INLINE void sweep_strip_back(int64_t begin, int64_t end, int64_t width, F&& f) {
  for (int64_t j = end - 1; j >= begin; --j) each_vector(width, [&](int64_t i, auto m) LAMBDA { f(j, i, m); });
}""",
    ),
    "Place": (
        ("select", "iota"),
        """template <int SIGN> struct Place {                                      // the first place of the maximum of SIGN * v, or of a NaN
  V best[UNROLL];
  M place[UNROLL] = {};
  Place() { for (int u = 0; u < UNROLL; ++u) best[u] = splat(-INF); }
  template <class A, class U> void LAMBDA add(A m, U u, int64_t j, V v) {
    if constexpr (SIGN < 0) v = -v;
    if constexpr (std::is_same_v<A, Tail>) v = select(lanes(m), v, splat(-INF));
    const M better = (best[u] == best[u]) & ~(v <= best[u]);
    best[u] = select(better, v, best[u]);
    place[u] = select(better, iota(j), place[u]);
  }
  int64_t LAMBDA fold() const {
    float most = best[0][0];
    int32_t first = place[0][0];
    for (int u = 0; u < UNROLL; ++u)
      for (int i = 0; i < W; ++i) {
        const float b = best[u][i];
        const bool same = b == most || (b != b && most != most), better = most == most && !(b <= most);
        if (better || (same && place[u][i] < first)) { most = b; first = place[u][i]; }
      }
    return first;
  }
};""",
    ),
    "LanePlace": (
        ("sweep_strip", "select"),
        """template <int SIGN> struct LanePlace {                                  // the same in each lane
  alignas(64) float best[STRIP];
  alignas(64) int32_t place[STRIP];
  explicit LAMBDA LanePlace(int64_t width) { for (int64_t i = 0; i < whole_vectors(width); ++i) { best[i] = -INF; place[i] = 0; } }
  void LAMBDA add(int64_t j, int64_t i, V v) {
    if constexpr (SIGN < 0) v = -v;
    const V before = load(Whole{}, best + i);
    M first; std::memcpy(&first, place + i, sizeof first);
    const M better = (before == before) & ~(v <= before);
    store(Whole{}, best + i, select(better, v, before));
    first = select(better, M{} + int32_t(j), first);
    std::memcpy(place + i, &first, sizeof first);
  }
  int64_t LAMBDA of(int64_t i) const { return place[i]; }
};""",
    ),
}
OPERATIONS = {"sum": "Plus", "prod": "Times", "max": "Farthest<1>", "min": "Farthest<-1>"}


def operation(fn: str) -> str:
    """Return the C++ type that combines the elements of a scan."""
    return OPERATIONS[fn.removeprefix(BACK)]


def is_back(expr: Expr) -> bool:
    """Return whether a scan begins at the end of its row."""
    return bool(expr.data.startswith(BACK))


def goes_back(kernel: Kernel, scans: Collection[int]) -> bool:
    """Return whether a pass with these scans goes over its row from the end. Raise Unsupported where they disagree."""
    found = {is_back(e) for e in kernel.exprs() if e.number in scans}
    if len(found) > 1:
        raise Unsupported("scans from both ends of a row in one pass")
    return True in found
