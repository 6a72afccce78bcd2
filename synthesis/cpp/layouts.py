"""The C++ text for rows with elements that are not neighbours in memory: strips of such rows, and tiles to transpose."""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

LAYOUT_PIECES: dict[str, tuple[tuple[str, ...], str]] = {
    "transpose": (
        (),
        """#if defined(__AVX__)
INLINE void transpose_8x8(const float* from, int64_t step, float* to, int64_t pitch) {
  for (int half = 0; half < 8; half += 4) {                            // four columns of eight rows
    __m256 row[4];
    for (int k = 0; k < 4; ++k) {
      const float* const upper = from + k * step + half;
      row[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper)), _mm_loadu_ps(upper + 4 * step), 1);
    }
    const __m256 low = _mm256_unpacklo_ps(row[0], row[1]), high = _mm256_unpackhi_ps(row[0], row[1]);
    const __m256 low_2 = _mm256_unpacklo_ps(row[2], row[3]), high_2 = _mm256_unpackhi_ps(row[2], row[3]);
    float* const first = to + half * pitch;
    _mm256_storeu_ps(first, _mm256_shuffle_ps(low, low_2, 0x44));
    _mm256_storeu_ps(first + pitch, _mm256_shuffle_ps(low, low_2, 0xee));
    _mm256_storeu_ps(first + 2 * pitch, _mm256_shuffle_ps(high, high_2, 0x44));
    _mm256_storeu_ps(first + 3 * pitch, _mm256_shuffle_ps(high, high_2, 0xee));
  }
}
#endif
// to[i * pitch + j] = from[j * step + i] for j < rows and i < columns.
INLINE void transpose(const float* from, int64_t step, int64_t rows, int64_t columns, float* to, int64_t pitch) {
  int64_t j = 0;
#if defined(__AVX__)
  for (; j + 8 <= rows; j += 8) {
    int64_t i = 0;
    for (; i + 8 <= columns; i += 8) transpose_8x8(from + j * step + i, step, to + i * pitch + j, pitch);
    for (; i < columns; ++i)
      for (int64_t k = j; k < j + 8; ++k) to[i * pitch + k] = from[k * step + i];
  }
#endif
  for (; j < rows; ++j)
    for (int64_t i = 0; i < columns; ++i) to[i * pitch + j] = from[j * step + i];
}""",
    ),
    "padded": (
        ("strided",),
        """#define NOINLINE __attribute__((noinline))                              // at edges only
template <class A> INLINE int64_t count_of(A m) { if constexpr (std::is_same_v<A, Tail>) return m.count; else return W; }
template <class A> static NOINLINE V padded_edge(A m, const float* p, int64_t step, int64_t first, int64_t extent, float value) {
  V v = splat(value);
  for (int64_t i = 0; i < count_of(m); ++i)
    if (first + i * step >= 0 && first + i * step < extent) v[i] = p[i * step];
  return v;
}
// Elements that are `step` apart. The first one is at place `first` of its row; those that are not in [0, extent) are `value`.
template <class A> INLINE V padded(A m, bool inside, const float* p, int64_t step, int64_t first, int64_t extent, float value) {
  if (!inside) return splat(value);
  if (__builtin_expect(first < 0 || first + (count_of(m) - 1) * step >= extent, 0)) return padded_edge(m, p, step, first, extent, value);
  if (step == 1) return load(m, p);
  return strided(m, p, step);
}""",
    ),
    "sweep_strip": (
        (),
        """INLINE int64_t whole_vectors(int64_t width) { return (width + W - 1) / W * W; }  // STRIP is a multiple of W
template <class F> INLINE void each_vector(int64_t width, F&& f) {
  int64_t i = 0;
  for (; i + W <= width; i += W) f(i, Whole{});
  if (i < width) f(i, Tail{width - i});
}
// f(j, i, mask) for the elements j in [begin, end) of the rows i in [0, width): N elements of a vector of rows at a time.
template <int N = UNROLL, class F> INLINE void sweep_strip(int64_t begin, int64_t end, int64_t width, F&& f) {
  int64_t j = begin;
  for (; j + N <= end; j += N)
    each_vector(width, [&](int64_t i, auto m) LAMBDA { unrolled(std::make_integer_sequence<int, N>{}, [&](auto u) LAMBDA { f(j + u, i, m); }); });
  for (; j < end; ++j) each_vector(width, [&](int64_t i, auto m) LAMBDA { f(j, i, m); });
}""",
    ),
    "LaneSum": (
        ("sweep_strip",),
        """struct LaneSum {                                                       // a sum in each lane: floats, folded into doubles
  alignas(64) float part[STRIP];                                       // lanes behind the width hold anything
  alignas(64) double total[STRIP];
  explicit LAMBDA LaneSum(int64_t width) { for (int64_t i = 0; i < whole_vectors(width); ++i) { part[i] = 0; total[i] = 0; } }
  void LAMBDA add(int64_t i, V v) { store(Whole{}, part + i, load(Whole{}, part + i) + v); }
  void LAMBDA add_product(int64_t i, V a, V b) { store(Whole{}, part + i, fma(a, b, load(Whole{}, part + i))); }  // with one rounding
  void LAMBDA fold(int64_t width) { for (int64_t i = 0; i < whole_vectors(width); ++i) { total[i] += part[i]; part[i] = 0; } }
};""",
    ),
    "LaneExtremum": (
        ("sweep_strip", "select"),
        """template <int SIGN, bool NANS> struct LaneExtremum {                    // maximum of SIGN * v in each lane; NANS: a NaN wins
  alignas(64) float part[STRIP];
  explicit LAMBDA LaneExtremum(int64_t width) { for (int64_t i = 0; i < whole_vectors(width); ++i) part[i] = -INF; }
  void LAMBDA add(int64_t i, V v) {
    if constexpr (SIGN < 0) v = -v;
    const V best = load(Whole{}, part + i);
    M better = v > best;
    if constexpr (NANS) better |= v != v;
    store(Whole{}, part + i, select(better, v, best));
  }
  float LAMBDA of(int64_t i) const { return SIGN * part[i]; }
};""",
    ),
}
