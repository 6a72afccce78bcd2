"""The C++ text that generated kernels share: vectors, masked tails, accumulators. Only what one uses is emitted."""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

from synthesis.cpp.functions import FUNCTION_PIECES
from synthesis.cpp.layouts import LAYOUT_PIECES
from synthesis.cpp.powers import POWER_PIECES
from synthesis.cpp.scans import SCAN_PIECES

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
            """#if defined(__AVX512F__) && VECTOR == 16                                // no element behind the last one is read
INLINE V every_second(const float* p) {
  const __m512i from = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  return (V)_mm512_permutex2var_ps(_mm512_loadu_ps(p), from, _mm512_loadu_ps(p + 15));
}
#elif defined(__AVX2__) && VECTOR == 8
INLINE V every_second(const float* p) {
  const __m256 mixed = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 7), 0xd8);
  return (V)_mm256_permute4x64_pd((__m256d)mixed, 0xd8);
}
#else
INLINE V every_second(const float* p) { V v; for (int i = 0; i < W; ++i) v[i] = p[2 * i]; return v; }
#endif
template <class T> INLINE auto strided(Whole, const T* p, int64_t step) {
  if constexpr (std::is_same_v<T, float>) if (step == 2) return every_second(p);
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
    }
    | FUNCTION_PIECES
    | SCAN_PIECES
    | {
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
