"""What a C++ text takes from elsewhere: its headers, and of immintrin.h the intrinsics that it names.

That header takes two thirds of the time to compile a kernel, and cmath takes a sixth.
"""

# ruff: noqa: E501  the lines of C++ are as long as they are

from __future__ import annotations

import re

_HEADERS = {
    "algorithm": ("min", "max"),
    "cstdlib": ("free", "aligned_alloc"),
    "cstring": ("memcpy",),
    "limits": ("numeric_limits",),
    "type_traits": ("is_same_v", "conditional_t", "integral_constant"),
    "utility": ("integer_sequence", "make_integer_sequence"),
}
_HEADER_OF = {name: header for header, names in _HEADERS.items() for name in names}
_NUMBERS = "cmath"
"""The header of all other names."""

_TYPES = """typedef float __m256 __attribute__((vector_size(32), may_alias));
typedef long long __m256i __attribute__((vector_size(32), may_alias));
typedef float __m512 __attribute__((vector_size(64), may_alias));
typedef unsigned char __mmask8;
typedef unsigned short __mmask16;
#ifndef _CMP_NLT_UQ
#define _CMP_NLT_UQ 0x15
#endif"""
INTRINSICS = {
    "__SSE__": {
        "_mm_sfence": "void _mm_sfence() { __builtin_ia32_sfence(); }",
    },
    "__AVX__": {
        "_mm256_set1_ps": "__m256 _mm256_set1_ps(float x) { return x - __m256{}; }",
        "_mm256_min_ps": "__m256 _mm256_min_ps(__m256 a, __m256 b) { return __builtin_ia32_minps256(a, b); }",
        "_mm256_max_ps": "__m256 _mm256_max_ps(__m256 a, __m256 b) { return __builtin_ia32_maxps256(a, b); }",
        "_mm256_sqrt_ps": "__m256 _mm256_sqrt_ps(__m256 a) { return __builtin_ia32_sqrtps256(a); }",
        "_mm256_round_ps": "__m256 _mm256_round_ps(__m256 a, const int how) { return __builtin_ia32_roundps256(a, how); }",
        "_mm256_stream_ps": "void _mm256_stream_ps(float* p, __m256 a) { __builtin_ia32_movntps256(p, a); }",
        "_mm256_maskload_ps": """__m256 _mm256_maskload_ps(const float* p, __m256i m) {
  typedef float F __attribute__((vector_size(32)));
  typedef int I __attribute__((vector_size(32)));
  return __builtin_ia32_maskloadps256((const F*)p, (I)m);
}""",
        "_mm256_maskstore_ps": """void _mm256_maskstore_ps(float* p, __m256i m, __m256 a) {
  typedef float F __attribute__((vector_size(32)));
  typedef int I __attribute__((vector_size(32)));
  __builtin_ia32_maskstoreps256((F*)p, (I)m, a);
}""",
    },
    "__FMA__": {
        "_mm256_fmadd_ps": "__m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c) { return __builtin_ia32_vfmaddps256(a, b, c); }",
    },
    "__AVX512VL__": {
        "_mm256_scalef_ps": "__m256 _mm256_scalef_ps(__m256 a, __m256 b) { return __builtin_ia32_scalefps256_mask(a, b, __m256{}, -1); }",
        "_mm256_maskz_scalef_ps": "__m256 _mm256_maskz_scalef_ps(__mmask8 m, __m256 a, __m256 b) { return __builtin_ia32_scalefps256_mask(a, b, __m256{}, m); }",
        "_mm256_cmp_ps_mask": "__mmask8 _mm256_cmp_ps_mask(__m256 a, __m256 b, const int how) { return __builtin_ia32_cmpps256_mask(a, b, how, -1); }",
    },
    "__AVX512F__": {
        "_mm512_set1_ps": "__m512 _mm512_set1_ps(float x) { return x - __m512{}; }",
        "_mm512_min_ps": "__m512 _mm512_min_ps(__m512 a, __m512 b) { return __builtin_ia32_minps512_mask(a, b, __m512{}, -1, 4); }",
        "_mm512_max_ps": "__m512 _mm512_max_ps(__m512 a, __m512 b) { return __builtin_ia32_maxps512_mask(a, b, __m512{}, -1, 4); }",
        "_mm512_sqrt_ps": "__m512 _mm512_sqrt_ps(__m512 a) { return __builtin_ia32_sqrtps512_mask(a, __m512{}, -1, 4); }",
        "_mm512_roundscale_ps": "__m512 _mm512_roundscale_ps(__m512 a, const int how) { return __builtin_ia32_rndscaleps_mask(a, how, __m512{}, -1, 4); }",
        "_mm512_fmadd_ps": "__m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4); }",
        "_mm512_scalef_ps": "__m512 _mm512_scalef_ps(__m512 a, __m512 b) { return __builtin_ia32_scalefps512_mask(a, b, __m512{}, -1, 4); }",
        "_mm512_maskz_scalef_ps": "__m512 _mm512_maskz_scalef_ps(__mmask16 m, __m512 a, __m512 b) { return __builtin_ia32_scalefps512_mask(a, b, __m512{}, m, 4); }",
        "_mm512_cmp_ps_mask": "__mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, const int how) { return __builtin_ia32_cmpps512_mask(a, b, how, -1, 4); }",
        "_mm512_maskz_loadu_ps": "__m512 _mm512_maskz_loadu_ps(__mmask16 m, const float* p) { return __builtin_ia32_loadups512_mask(p, __m512{}, m); }",
        "_mm512_mask_storeu_ps": "void _mm512_mask_storeu_ps(float* p, __mmask16 m, __m512 a) { __builtin_ia32_storeups512_mask(p, a, m); }",
    },
}
"""As GCC's own headers define them, by the macro of the instructions. Of these alone, no header is included."""
_WHOLE = "#include <immintrin.h>"


def includes(text: str) -> str:
    """Return the lines to put above a C++ text."""
    named = {_HEADER_OF.get(name, _NUMBERS) for name in re.findall(r"\bstd::(\w+)", text)}
    lines = [f"#include <{header}>" for header in sorted({*named, "cstdint"})]
    intrinsics = set(re.findall(r"\b_mm\d*_\w+", text))
    if not intrinsics:
        return "\n".join(lines)
    known = {name for group in INTRINSICS.values() for name in group}
    if intrinsics <= known:
        # Other compilers, and later versions, may define them in another way.
        lines += ["#if defined(__SSE__) && __GNUC__ >= 10 && __GNUC__ <= 14 && !defined(__clang__)"]
        lines += [*_defined(intrinsics), "#elif defined(__SSE__)", _WHOLE, "#endif"]
    else:
        lines += ["#if defined(__SSE__)", _WHOLE, "#endif"]
    return "\n".join(lines)


def _defined(intrinsics: set[str]) -> list[str]:
    """Return the lines that define these intrinsics, with their types."""
    lines = [_TYPES]
    for macro, group in INTRINSICS.items():
        wanted = [f"static inline __attribute__((always_inline)) {group[name]}" for name in group if name in intrinsics]
        lines += [f"#if defined({macro})", *wanted, "#endif"] if wanted else []
    return lines
