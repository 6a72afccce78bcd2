"""The C++ text for powers with any exponent: logarithm and power of two in doubles, so that one rounding is left."""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

POWER_PIECES: dict[str, tuple[tuple[str, ...], str]] = {
    "any": (
        (),
        """#if defined(__AVX512F__) && VECTOR == 16
INLINE bool any(M m) { return _mm512_test_epi32_mask((__m512i)m, (__m512i)m); }
#elif defined(__AVX__) && VECTOR == 8
INLINE bool any(M m) { return _mm256_movemask_ps((__m256)m); }
#else
INLINE bool any(M m) { int32_t found = 0; for (int i = 0; i < W; ++i) found |= m[i]; return found; }
#endif""",
    ),
    "vpow": (
        ("any", "vabs", "select", "vtrunc"),
        """typedef double D __attribute__((vector_size(4 * VECTOR)));              // half as many doubles
typedef uint64_t B __attribute__((vector_size(4 * VECTOR)));           // and their bits
#if defined(__AVX512F__) && VECTOR == 16
INLINE D fma(D a, D b, D c) { return (D)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
#elif defined(__FMA__) && VECTOR == 8
INLINE D fma(D a, D b, D c) { return (D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
#else
INLINE D fma(D a, D b, D c) { return a * b + c; }
#endif
INLINE D fma(D a, double b, D c) { return fma(a, b - D{}, c); }
INLINE D fma(D a, double b, double c) { return fma(a, b - D{}, c - D{}); }
INLINE D log2_of(D x) {                                                // x > 0; x = 2^k m for m from sqrt(0.5) to sqrt(2)
  const B raw = (B)x, shifted = raw - 0x3fe6a09e667f3bcd + (uint64_t(1024) << 52);
  const D k = (D)((shifted >> 52) | 0x4330000000000000) - (4503599627370496.0 + 1024.0);
  const D m = (D)(raw - (shifted & 0xfff0000000000000) + (uint64_t(1024) << 52));
  const D s = (m - 1.0) / (m + 1.0), z = s * s;                        // log(m) = 2 atanh(s)
  const D low = fma(z * z, fma(z, 1.0 / 7.0, 1.0 / 5.0), fma(z, 1.0 / 3.0, 1.0));
  const D high = fma(z * z, 1.0 / 13.0, fma(z, 1.0 / 11.0, 1.0 / 9.0));
  return fma(s * 2.8853900817779268, fma(z * z * (z * z), high, low), k);
}
INLINE D exp2_of(D t) {                                                // from -160 to 160, where floats end
  t = t > 160.0 ? D{} + 160.0 : t;
  t = t < -160.0 ? D{} - 160.0 : t;
  const D shifted = t + 6755399441055744.0, f = (t - (shifted - 6755399441055744.0)) * 0.69314718055994531;
  const D square = f * f, low = fma(square, fma(f, 1.0 / 6.0, 0.5), f + 1.0);
  const D middle = fma(square, fma(f, 1.0 / 5040.0, 1.0 / 720.0), fma(f, 1.0 / 120.0, 1.0 / 24.0));
  const D power = fma(square * square, fma(square * square, 1.0 / 40320.0, middle), low);
  return (D)((B)power + ((B)shifted << 52));
}
INLINE D power_of(D x, D y) { return exp2_of(y * log2_of(x)); }
template <int... I> INLINE V power_of_positive(std::integer_sequence<int, I...>, V x, V y) {
  const D low = power_of(D{double(x[I])...}, D{double(y[I])...}), high = power_of(D{double(x[I + W / 2])...}, D{double(y[I + W / 2])...});
  return V{float(low[I])..., float(high[I])...};
}
INLINE V vpow(V x, V y) {
  const V nan = splat(std::numeric_limits<float>::quiet_NaN());
  const M odd = (vtrunc(y) == y) & ((__builtin_convertvector(y, M) & 1) != 0);
  V power = power_of_positive(std::make_integer_sequence<int, W / 2>{}, select(x == 0.0f, splat(1.0f), vabs(x)), y);
  power = select((x == 0.0f) & (y != 0.0f), select(y > 0.0f, splat(0.0f), splat(INF)), power);
  power = select((x < 0.0f) & (vtrunc(y) != y), nan, power);
  power = value(bits(power) ^ (bits(x) & odd & int32_t(0x80000000)));
  const M usual = (vabs(x) < INF) & (vabs(y) < 16777216.0f);           // larger ones are even
  if (__builtin_expect(any(~usual), 0))
    for (int i = 0; i < W; ++i) if (!usual[i]) power[i] = std::pow(x[i], y[i]);
  return power;
}""",
    ),
}
