"""The C++ text of functions of vectors: roundings, exponentials, logarithms, sines, the error function.

They are accurate to two units in the last place or so and let NaN and infinities through: polynomials after Cephes (S.
Moshier: log, sine, expm1's range), N. Juffa (erf) and Eigen (tanh).
"""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

FUNCTION_PIECES: dict[str, tuple[tuple[str, ...], str]] = {
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
        ("vexp", "vabs", "select"),
        """INLINE V vtanh(V x) {                                                  // 1 from the bound on
  const V a = bounded(x, -7.99881172f, 7.99881172f), z = a * a;
  V p = splat(-2.76076847742355e-16f);
  p = fma(p, z, 2.00018790482477e-13f);
  p = fma(p, z, -8.60467152213735e-11f);
  p = fma(p, z, 5.12229709037114e-8f);
  p = fma(p, z, 1.48572235717979e-5f);
  p = fma(p, z, 6.37261928875436e-4f);
  p = fma(p, z, 4.89352455891786e-3f);
  V q = splat(1.19825839466702e-6f);
  q = fma(q, z, 1.18534705686654e-4f);
  q = fma(q, z, 2.26843463243900e-3f);
  q = fma(q, z, 4.89352518554385e-3f);
  return select(vabs(x) < 4e-4f, x, a * p / q);
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
}
