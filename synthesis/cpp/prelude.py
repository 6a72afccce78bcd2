"""The C++ text that generated kernels share: vectors, masked tails, accumulators, and float32 mathematics.

The functions are accurate to one or two units in the last place and let NaN and infinities through: polynomials after
Cephes (S. Moshier: log, tanh, sine, expm1's range) and N. Juffa (erf). Only what a kernel uses is emitted.
"""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

from synthesis.cpp.layouts import LAYOUT_PIECES
from synthesis.cpp.powers import POWER_PIECES

CORE = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#if VECTOR > 8 && !defined(__AVX512F__)                                // compilers take such vectors apart
#undef VECTOR
#define VECTOR 8
#endif
constexpr int W = VECTOR;                                              // floats in a vector
typedef float V __attribute__((vector_size(4 * VECTOR)));              // values
typedef int32_t M __attribute__((vector_size(4 * VECTOR)));            // masks (-1 or 0) and indices
#define INLINE static inline __attribute__((always_inline))
#define LAMBDA __attribute__((always_inline))
constexpr float INF = std::numeric_limits<float>::infinity();

struct Whole {};                                                       // a whole vector
struct Tail { int64_t count; };                                        // the first `count` lanes

INLINE V splat(float x) { return x - V{}; }
INLINE M splat_mask(bool x) { return M{} - int32_t(x); }
#if defined(__AVX512F__) && VECTOR == 16                                // one rounding; nothing else is contracted
INLINE V fma(V a, V b, V c) { return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
#elif defined(__FMA__) && VECTOR == 8
INLINE V fma(V a, V b, V c) { return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
#else
INLINE V fma(V a, V b, V c) { return a * b + c; }
#endif
INLINE V fma(V a, V b, float c) { return fma(a, b, c - V{}); }
INLINE V fma(V a, float b, V c) { return fma(a, b - V{}, c); }
INLINE V fma(V a, float b, float c) { return fma(a, b - V{}, c - V{}); }
INLINE M bits(V x) { return (M)x; }
INLINE V value(M x) { return (V)x; }
INLINE V load(Whole, const float* p) { V v; std::memcpy(&v, p, sizeof v); return v; }
INLINE M lanes(Whole) { return M{} - 1; }
INLINE M lanes(Tail t) { M v; for (int i = 0; i < W; ++i) v[i] = i; return v < int32_t(t.count); }
INLINE void store(Whole, float* p, V v) { std::memcpy(p, &v, sizeof v); }
#if defined(__AVX512F__) && VECTOR == 16                                // nothing behind a row is touched
INLINE V load(Tail t, const float* p) { return (V)_mm512_maskz_loadu_ps((1u << t.count) - 1, p); }
INLINE void store(Tail t, float* p, V v) { _mm512_mask_storeu_ps(p, (1u << t.count) - 1, (__m512)v); }
#elif defined(__AVX__) && VECTOR == 8
INLINE V load(Tail t, const float* p) { return (V)_mm256_maskload_ps(p, (__m256i)lanes(t)); }
INLINE void store(Tail t, float* p, V v) { _mm256_maskstore_ps(p, (__m256i)lanes(t), (__m256)v); }
#else
INLINE V load(Tail t, const float* p) { V v{}; for (int i = 0; i < t.count; ++i) v[i] = p[i]; return v; }
INLINE void store(Tail t, float* p, V v) { for (int i = 0; i < t.count; ++i) p[i] = v[i]; }
#endif
template <class T> INLINE void stream(T m, float* p, V v) { store(m, p, v); }
#if defined(__AVX__)
INLINE void stream(Whole m, float* p, V v) {                           // past the caches, where aligned
  if constexpr (STREAM_STORES && W >= 8) {
    if ((uintptr_t(p) & 31) == 0) {
      for (int i = 0; i < W / 8; ++i) { __m256 part; std::memcpy(&part, (const char*)&v + 32 * i, 32); _mm256_stream_ps(p + 8 * i, part); }
      return;
    }
  }
  store(m, p, v);
}
#endif

template <int... I, class F> INLINE void unrolled(std::integer_sequence<int, I...>, F&& f) { (f(std::integral_constant<int, I>{}), ...); }

INLINE void stores_done() {                                            // streamed stores are visible to every thread
#if defined(__SSE__)
  if constexpr (STREAM_STORES) _mm_sfence();
#endif
}

// f(j, mask, u) for j in [begin, end): N vectors at a time (u is the number within), then single ones, then the tail.
template <int N = UNROLL, class F> INLINE void sweep(int64_t begin, int64_t end, F&& f) {
  int64_t j = begin;
  for (; j + W * N <= end; j += W * N)
    unrolled(std::make_integer_sequence<int, N>{}, [&](auto u) LAMBDA { f(j + u * W, Whole{}, u); });
  for (; j + W <= end; j += W) f(j, Whole{}, std::integral_constant<int, 0>{});
  if (j < end) f(j, Tail{end - j}, std::integral_constant<int, 0>{});
}
"""

PIECES: dict[str, tuple[tuple[str, ...], str]] = (
    LAYOUT_PIECES
    | POWER_PIECES
    | {
        "load_ahead": (
            (),
            """INLINE V load_ahead(Whole m, const float* p) {                         // with a hint to fetch what lies PREFETCH bytes on
  if constexpr (PREFETCH > 0) __builtin_prefetch((const char*)p + PREFETCH);
  return load(m, p);
}
INLINE V load_ahead(Tail t, const float* p) { return load(t, p); }""",
        ),
        "select": (
            (),
            "INLINE V select(M m, V a, V b) { return m ? a : b; }\nINLINE M select(M m, M a, M b) { return m ? a : b; }",
        ),
        "iota": (
            (),
            "INLINE M iota(int64_t start) { M v; for (int i = 0; i < W; ++i) v[i] = int32_t(start) + i; return v; }",
        ),
        "to_float": ((), "INLINE V to_float(M x) { return __builtin_convertvector(x, V); }"),
        "to_int": ((), "INLINE M to_int(V x) { return __builtin_convertvector(x, M); }"),
        "load_bool": (
            (),
            """INLINE M load_bool(Whole, const bool* p) {
#if defined(__AVX512F__) && VECTOR == 16
  return (M)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)) != 0;
#elif defined(__AVX2__)
  if constexpr (W % 8 == 0) {
    M v;
    for (int i = 0; i < W / 8; ++i) {
      const __m256i part = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)(p + 8 * i)));
      std::memcpy((char*)&v + 32 * i, &part, 32);
    }
    return v != 0;
  }
#endif
  typedef int8_t B __attribute__((vector_size(VECTOR)));
  B v; std::memcpy(&v, p, sizeof v); return __builtin_convertvector(v, M) != 0;
}
INLINE M load_bool(Tail t, const bool* p) { M v{}; for (int i = 0; i < t.count; ++i) v[i] = -int32_t(p[i]); return v; }
INLINE void store_bool(Whole, bool* p, M v) { for (int i = 0; i < W; ++i) p[i] = v[i] != 0; }
INLINE void store_bool(Tail t, bool* p, M v) { for (int i = 0; i < t.count; ++i) p[i] = v[i] != 0; }""",
        ),
        "load_int": (
            (),
            """template <class T> INLINE M load_int(Whole, const T* p) { M v; for (int i = 0; i < W; ++i) v[i] = int32_t(p[i]); return v; }
template <class T> INLINE M load_int(Tail t, const T* p) { M v{}; for (int i = 0; i < t.count; ++i) v[i] = int32_t(p[i]); return v; }
template <class T> INLINE void store_int(Whole, T* p, M v) { for (int i = 0; i < W; ++i) p[i] = T(v[i]); }
template <class T> INLINE void store_int(Tail t, T* p, M v) { for (int i = 0; i < t.count; ++i) p[i] = T(v[i]); }""",
        ),
        "strided": (
            (),
            """template <class T> INLINE auto strided(Whole, const T* p, int64_t step) {
  std::conditional_t<std::is_same_v<T, float>, V, M> v;
  for (int i = 0; i < W; ++i) v[i] = std::is_same_v<T, bool> ? -int(p[i * step]) : p[i * step];
  return v;
}
template <class T> INLINE auto strided(Tail t, const T* p, int64_t step) {
  std::conditional_t<std::is_same_v<T, float>, V, M> v{};
  for (int i = 0; i < t.count; ++i) v[i] = std::is_same_v<T, bool> ? -int(p[i * step]) : p[i * step];
  return v;
}
template <class A> INLINE void store_strided(A m, float* p, int64_t step, V v) {
  int64_t count = W;
  if constexpr (std::is_same_v<A, Tail>) count = m.count;
  for (int i = 0; i < count; ++i) p[i * step] = v[i];
}""",
        ),
        "Sum": (
            (),
            """template <int N = UNROLL> struct Sum {                                  // float lanes, folded into a double
  V part[N] = {};
  template <class A, class U> void LAMBDA add(A m, U u, V v) {
    if constexpr (std::is_same_v<A, Tail>) v = value(bits(v) & lanes(m));
    part[u] += v;
  }
  template <class A, class U> void LAMBDA add_product(A m, U u, V a, V b) {  // with one rounding
    if constexpr (std::is_same_v<A, Tail>) { a = value(bits(a) & lanes(m)); b = value(bits(b) & lanes(m)); }
    part[u] = fma(a, b, part[u]);
  }
  double LAMBDA fold() {
    V sum = part[0];
    for (int u = 1; u < N; ++u) sum += part[u];
    for (int u = 0; u < N; ++u) part[u] = V{};
    typedef double D __attribute__((vector_size(8 * VECTOR)));
    D wide = __builtin_convertvector(sum, D);
    double total = 0;
    for (int i = 0; i < W; i += 4) total += (wide[i] + wide[i + 1]) + (wide[i + 2] + wide[i + 3]);
    return total;
  }
};""",
        ),
        "Max": (
            ("select",),
            """template <int SIGN, bool NANS> struct Extremum {                        // maximum of SIGN * v; NANS: a NaN wins
  V part[UNROLL];
  M bad = {};
  Extremum() { for (int u = 0; u < UNROLL; ++u) part[u] = splat(-INF); }
  template <class A, class U> void LAMBDA add(A m, U u, V v) {
    if constexpr (SIGN < 0) v = -v;
    if constexpr (std::is_same_v<A, Tail>) v = select(lanes(m), v, splat(-INF));
    if constexpr (NANS) bad |= v != v;
    part[u] = part[u] > v ? part[u] : v;
  }
  float LAMBDA fold() {
    V all = splat(-INF);
    for (int u = 0; u < UNROLL; ++u) all = part[u] > all ? part[u] : all;
    float best = -INF;
    int32_t any = 0;
    for (int i = 0; i < W; ++i) { best = all[i] > best ? all[i] : best; any |= bad[i]; }
    return NANS && any ? std::numeric_limits<float>::quiet_NaN() : SIGN * best;
  }
};""",
        ),
        "vabs": ((), "INLINE V vabs(V x) { return value(bits(x) & 0x7fffffff); }"),
        "vcopysign": (
            (),
            "INLINE V vcopysign(V x, V sign) { return value((bits(x) & 0x7fffffff) | (bits(sign) & int32_t(0x80000000))); }",
        ),
        "vsqrt": (
            (),
            """#if defined(__AVX512F__) && VECTOR == 16
INLINE V vsqrt(V x) { return (V)_mm512_sqrt_ps((__m512)x); }
#elif defined(__AVX__) && VECTOR == 8
INLINE V vsqrt(V x) { return (V)_mm256_sqrt_ps((__m256)x); }
#else
INLINE V vsqrt(V x) { for (int i = 0; i < W; ++i) x[i] = __builtin_sqrtf(x[i]); return x; }
#endif""",
        ),
        "vrsqrt": (("vsqrt",), "INLINE V vrsqrt(V x) { return 1.0f / vsqrt(x); }"),
        "vmax": ((), "INLINE V vmax(V a, V b) { return ((a > b) | (a != a)) ? a : b; }"),
        "vmin": ((), "INLINE V vmin(V a, V b) { return ((a < b) | (a != a)) ? a : b; }"),
        "rounded": (
            (),
            """enum { NEAREST = 0, DOWN = 1, UP = 2, TO_ZERO = 3 };                   // as the processor numbers them
template <int HOW> INLINE V rounded(V x) {
#if defined(__AVX512F__) && VECTOR == 16
  return (V)_mm512_roundscale_ps((__m512)x, HOW | 8);
#elif defined(__AVX__) && VECTOR == 8
  return (V)_mm256_round_ps((__m256)x, HOW | 8);
#else
  for (int i = 0; i < W; ++i)
    x[i] = HOW == NEAREST ? __builtin_rintf(x[i]) : HOW == DOWN ? __builtin_floorf(x[i]) : HOW == UP ? __builtin_ceilf(x[i]) : __builtin_truncf(x[i]);
  return x;
#endif
}""",
        ),
        "vfloor": (("rounded",), "INLINE V vfloor(V x) { return rounded<DOWN>(x); }"),
        "vceil": (("rounded",), "INLINE V vceil(V x) { return rounded<UP>(x); }"),
        "vround": (("rounded",), "INLINE V vround(V x) { return rounded<NEAREST>(x); }"),
        "vtrunc": (("rounded",), "INLINE V vtrunc(V x) { return rounded<TO_ZERO>(x); }"),
        "turned": (
            ("any", "vabs", "select"),
            """INLINE V turned(V x, V k, int32_t ahead) {                             // sin(x + ahead pi / 2) for |x| <= 8192, k = whole(2 x / pi)
  const V r = fma(k, 4.37113883e-8f, fma(k, -1.57079637050628662f, x)), z = r * r;
  V s = fma(z, -1.9515295891e-4f, 8.3321608736e-3f);
  s = fma(s, z, -1.6666654611e-1f);
  s = fma(s * z, r, r);
  V c = fma(z, 2.443315711809948e-5f, -1.388731625493765e-3f);
  c = fma(c, z, 4.166664568298827e-2f);
  c = fma(c * z, z, fma(z, -0.5f, 1.0f));
  const M quarter = __builtin_convertvector(k, M) + ahead;
  return value(bits(select((quarter & 1) != 0, c, s)) ^ ((quarter & 2) << 30));
}
template <int AHEAD> INLINE V sine(V x) {
  const M far = ~(vabs(x) <= 8192.0f);                                 // infinite and NaN, too
  if (__builtin_expect(any(far), 0)) {
    for (int i = 0; i < W; ++i) x[i] = AHEAD ? std::cos(x[i]) : std::sin(x[i]);
    return x;
  }
  return turned(x, fma(x, 0.636619772f, 12582912.0f) - 12582912.0f, AHEAD);
}""",
        ),
        "vsin": (("turned",), "INLINE V vsin(V x) { return sine<0>(x); }"),
        "vcos": (("turned",), "INLINE V vcos(V x) { return sine<1>(x); }"),
        "vatan2": (
            (),
            "INLINE V vatan2(V x, V y) { for (int i = 0; i < W; ++i) x[i] = std::atan2(x[i], y[i]); return x; }",
        ),
        "vexp": (
            (),
            """#if defined(__AVX512F__) && VECTOR == 16                                // NaN stays; and p 2^k for whole k
INLINE V bounded(V x, float low, float high) { return (V)_mm512_max_ps(_mm512_set1_ps(low), _mm512_min_ps(_mm512_set1_ps(high), (__m512)x)); }
INLINE V times_power(V p, V k) { return (V)_mm512_scalef_ps((__m512)p, (__m512)k); }
INLINE V times_power_from(float low, V x, V p, V k) {
  return (V)_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(low), _CMP_NLT_UQ), (__m512)p, (__m512)k);
}
#elif defined(__AVX512VL__) && VECTOR == 8
INLINE V bounded(V x, float low, float high) { return (V)_mm256_max_ps(_mm256_set1_ps(low), _mm256_min_ps(_mm256_set1_ps(high), (__m256)x)); }
INLINE V times_power(V p, V k) { return (V)_mm256_scalef_ps((__m256)p, (__m256)k); }
INLINE V times_power_from(float low, V x, V p, V k) {
  return (V)_mm256_maskz_scalef_ps(_mm256_cmp_ps_mask((__m256)x, _mm256_set1_ps(low), _CMP_NLT_UQ), (__m256)p, (__m256)k);
}
#else
INLINE V bounded(V x, float low, float high) { x = x > high ? splat(high) : x; return x < low ? splat(low) : x; }
INLINE V times_power(V p, V k) {                                       // in two factors: no overflow on the way
  const M n = __builtin_convertvector(k, M), half = n >> 1;
  return p * value((half + 127) << 23) * value((n - half + 127) << 23);
}
INLINE V times_power_from(float low, V x, V p, V k) {                  // 0 below: that takes some processors 150 cycles
  const M kept = ~(x < low);
  return value(kept & bits(times_power(p, value(kept & bits(k)))));
}
#endif
INLINE V near_zero(V r) {                                              // exp(r) - 1 for |r| < 0.35
  V p = splat(1.9875691500e-4f);
  p = fma(p, r, 1.3981999507e-3f);
  p = fma(p, r, 8.3334519073e-3f);
  p = fma(p, r, 4.1665795894e-2f);
  p = fma(p, r, 1.6666665459e-1f);
  p = fma(p, r, 5.0000001201e-1f);
  return fma(p, r * r, r);
}
INLINE V whole(V x) { return (x + 12582912.0f) - 12582912.0f; }        // nearest integer
INLINE V remainder(V x, V k) { return fma(k, 2.12194440e-4f, fma(k, -0.693359375f, x)); }
INLINE V vexp(V x) {
  x = bounded(x, -104.5f, 89.0f);                                      // exp(89) is infinite, exp(-104) is 0
  const V k = fma(x, 1.44269504088896341f, 12582912.0f) - 12582912.0f;
  return times_power_from(-104.0f, x, near_zero(remainder(x, k)) + 1.0f, k);
}""",
        ),
        "vexp2": (
            ("vexp",),
            """INLINE V vexp2(V x) {
  x = bounded(x, -151.0f, 129.0f);
  const V k = whole(x);
  return times_power_from(-150.0f, x, near_zero((x - k) * 0.693147180559945309f) + 1.0f, k);
}""",
        ),
        "vexpm1": (
            ("vexp",),
            """INLINE V vexpm1(V x) {
  const V b = bounded(x, -30.0f, 89.0f), k = whole(b * 1.44269504088896341f);
  const V small = near_zero(remainder(b, k));
  return times_power(small + (1.0f - times_power(splat(1.0f), -k)), k);
}""",
        ),
        "vlog2": (("vlog",), "INLINE V vlog2(V x) { return vlog(x) * 1.44269504088896341f; }"),
        "vlog": (
            ("select",),
            """INLINE V vlog(V x) {
  const M tiny = x < 1.17549435e-38f;
  V m = select(tiny, x * 8388608.0f, x);                               // subnormals scaled up
  const M raw = bits(m);
  M e = (raw >> 23) - 126 - (tiny & 23);
  m = value((raw & 0x007fffff) | 0x3f000000);                          // in [0.5, 1)
  const M low = m < 0.707106781186547524f;
  e += low;
  m = select(low, m + m, m) - 1.0f;
  const V z = m * m, k = __builtin_convertvector(e, V);
  V p = splat(7.0376836292e-2f);
  p = fma(p, m, -1.1514610310e-1f);
  p = fma(p, m, 1.1676998740e-1f);
  p = fma(p, m, -1.2420140846e-1f);
  p = fma(p, m, 1.4249322787e-1f);
  p = fma(p, m, -1.6668057665e-1f);
  p = fma(p, m, 2.0000714765e-1f);
  p = fma(p, m, -2.4999993993e-1f);
  p = fma(p, m, 3.3333331174e-1f);
  V y = fma(k, -2.12194440e-4f, p * m * z);
  y = fma(z, -0.5f, y);
  y = fma(k, 0.693359375f, m + y);
  y = select(x == 0.0f, splat(-INF), y);
  y = select(x == INF, x, y);
  return select((x < 0.0f) | (x != x), splat(std::numeric_limits<float>::quiet_NaN()), y);
}""",
        ),
        "vlog1p": (
            ("vlog", "select"),
            """INLINE V vlog1p(V x) {
  const V u = x + 1.0f;
  const V y = vlog(u) + (x - (u - 1.0f)) / u;
  return select((u == 1.0f) | (x == INF), x, select(u == 0.0f, splat(-INF), y));
}""",
        ),
        "vtanh": (
            ("vexp", "vabs", "vcopysign", "select"),
            """INLINE V vtanh(V x) {
  const V a = vabs(x), z = x * x;
  V p = splat(-5.70498872745e-3f);
  p = fma(p, z, 2.06390887954e-2f);
  p = fma(p, z, -5.37397155531e-2f);
  p = fma(p, z, 1.33314422036e-1f);
  p = fma(p, z, -3.33332819422e-1f);
  const V small = fma(p * z, x, x);
  const V large = vcopysign(1.0f - 2.0f / (vexp(a + a) + 1.0f), x);
  return select(a < 0.625f, small, x != x ? x : large);
}""",
        ),
        "verf": (
            ("vexp", "vabs", "vcopysign", "select"),
            """INLINE V verf(V x) {
  const V a = vabs(x), s = x * x, t = a > 9.0f ? splat(9.0f) : a, q = t * t;
  V r = fma(t, -1.72853470e-5f, 3.83197126e-4f);
  const V w = fma(t, -3.88396438e-3f, 2.42546219e-2f);
  r = fma(r, q, w);
  r = fma(r, t, -1.06777877e-1f);
  r = fma(r, t, -6.34846687e-1f);
  r = fma(r, t, -1.28717512e-1f);
  r = fma(r, t, -t);
  const V large = vcopysign(1.0f - vexp(r), x);
  V p = splat(-5.96761703e-4f);
  p = fma(p, s, 4.99119423e-3f);
  p = fma(p, s, -2.67681349e-2f);
  p = fma(p, s, 1.12819925e-1f);
  p = fma(p, s, -3.76125336e-1f);
  p = fma(p, s, 1.28379166e-1f);
  const V small = fma(p, x, x);
  return select(a > 0.927734375f, x != x ? x : large, small);
}""",
        ),
        "one_plus_erf": (
            ("vexp", "vabs", "select"),
            """INLINE V one_plus_erf(V x) {                                           // 7.1.26 of Abramowitz and Stegun: off by 1.5e-7 at most
  const V t = 1.0f / fma(vabs(x), 0.3275911f, 1.0f);
  V p = fma(t, 1.061405429f, -1.453152027f);
  p = fma(p, t, 1.421413741f);
  p = fma(p, t, -0.284496736f);
  p = fma(p, t, 0.254829592f);
  const V beyond = p * t * vexp(-(x * x));
  return select(x < 0.0f, beyond, 2.0f - beyond);
}""",
        ),
        "vsigmoid": (("vexp",), "INLINE V vsigmoid(V x) { return 1.0f / (1.0f + vexp(-x)); }"),
        "vsilu": (("vexp",), "INLINE V vsilu(V x) { return x / (1.0f + vexp(-x)); }"),
        "scratch": (
            (),
            """static float* scratch(int64_t count) {                                 // one row that stays in the cache, reused by later calls
  static thread_local float* memory = nullptr;
  static thread_local int64_t size = 0;
  if (size < count) { std::free(memory); size = (count + 1023) / 1024 * 1024; memory = (float*)std::aligned_alloc(64, size * sizeof(float)); }
  return memory;
}""",
        ),
    }
)


def prelude(names: set[str]) -> str:
    """Return the shared text with the pieces in `names` and their dependencies."""
    wanted: list[str] = []

    def add(name: str) -> None:
        needs, _ = PIECES[name]
        for need in needs:
            add(need)
        if name not in wanted:
            wanted.append(name)

    for name in sorted(names, key=list(PIECES).index):
        add(name)
    return "\n".join([CORE.strip("\n"), "", *(PIECES[name][1] for name in wanted)])
