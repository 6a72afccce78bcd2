"""Names that generated kernels and their callers use themselves, so that nothing of a reference is called so."""

from __future__ import annotations

import keyword
import re

from synthesis.cpp.prelude import CORE, PIECES

_CPP = """alignas alignof asm auto bitand bitor bool break case catch char compl concept const consteval constexpr
constinit const_cast co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit
export extern float for friend goto if inline int long mutable namespace new noexcept not_eq operator or_eq and_eq
private protected public register reinterpret_cast requires restrict short signed sizeof static static_assert
static_cast struct switch template this thread_local throw try typedef typeid typename union unsigned using virtual
void volatile wchar_t xor xor_eq and or not NAN std"""
_OF_WRITERS = """n row row_count self torch triton tl nn F grid device j o0 o1 o2 o3 k0 k1 k2 whole m u begin end
memory zero inside row_inside column_inside i first width widest program blocks place start block larger shift total
begun lanes threads image own other known part parts slices step steps VECTOR UNROLL STREAM_STORES PREFETCH
KEEP_IN_OUTPUT STRIP TILE ROWS BLOCK EVICT INDEX EVEN WHOLE STAGES"""
_DECLARED = re.compile(
    r"^(?:template <[^{]*?> )?(?:(?:INLINE|static) [^(=;]*?(\w+)\(|(?:struct|#define|typedef \w+|constexpr \w+) (\w+))",
    re.MULTILINE,
)


def declared(text: str) -> set[str]:
    """Return the names of the functions, types, constants and macros that a text in C++ declares outermost."""
    return {name for found in _DECLARED.findall(text) for name in found if name}


RESERVED = frozenset(
    {*_CPP.split(), *_OF_WRITERS.split(), *keyword.kwlist}
    | declared("\n".join([CORE, *(text for _, text in PIECES.values())]))
)
