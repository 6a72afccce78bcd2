"""The C++ text for strips of rows that lie side by side: one row in each lane, accumulators in the cache."""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

STRIP_PIECES: dict[str, tuple[tuple[str, ...], str]] = {
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
