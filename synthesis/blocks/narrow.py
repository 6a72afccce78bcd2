"""Weights of 8 and 4 bits as operands of a product, without the slow conversion from integers.

A byte below a bfloat16's exponent 0x43 is that many above 128: all such integers are exact, and one fused
multiply-add takes the 128 away again, two values at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.expr import Expr

_BYTES = """
    .reg .b32 c, one, u, v, p, q;
    mov.b32 c, 0x43434343;
    mov.b32 one, 0x3F803F80;
    prmt.b32 u, $2, c, 0x4140;
    prmt.b32 v, $2, c, 0x4342;
    and.b32 p, u, 0xFF7FFF7F;
    and.b32 q, u, 0xFF80FF80;
    or.b32 q, q, 0x80008000;
    fma.rn.bf16x2 $0, p, one, q;
    and.b32 p, v, 0xFF7FFF7F;
    and.b32 q, v, 0xFF80FF80;
    or.b32 q, q, 0x80008000;
    fma.rn.bf16x2 $1, p, one, q;"""
_NIBBLES = """
    .reg .b32 c, one, off, u;
    mov.b32 c, 0x43434343;
    mov.b32 one, 0x3F803F80;
    mov.b32 off, OFFSET;
    shr.b32 u, $2, SHIFT;
    and.b32 u, u, 0x0F0F0F0F;
    prmt.b32 $0, u, c, 0x4140;
    prmt.b32 $1, u, c, 0x4342;
    fma.rn.bf16x2 $0, $0, one, off;
    fma.rn.bf16x2 $1, $1, one, off;"""


@dataclass(frozen=True, slots=True)
class Narrow:
    """An integer weight: the load of its bytes, the bits in use ("bytes", "low" or "high"), and the offset."""

    load: Expr
    bits: str
    zero: int = 0

    @property
    def name(self) -> str:
        return f"_{self.bits}_less_{self.zero}" if self.zero else f"_{self.bits}"

    def function(self) -> str:
        """Return the function that makes an operand of loaded bytes."""
        if self.bits == "bytes":
            asm, plain, what = _BYTES, "x", "Signed bytes"
        else:
            shift = 0 if self.bits == "low" else 4
            offset = f"0xC3{self.zero:02X}C3{self.zero:02X}"
            asm = _NIBBLES.replace("OFFSET", offset).replace("SHIFT", str(shift))
            plain = f"((x >> {shift}) & 15)"
            what = f"The {self.bits} four bits of each byte"
        less = f".to(tl.float32) - {float(self.zero)}" if self.zero else ""
        note = f"{what}, less {self.zero}" if self.zero else what
        text = f"({plain}{less}).to(TYPE)"
        return f'''@triton.jit
def {self.name}(x, TYPE: tl.constexpr):
    """{note}, as TYPE. In bfloat16 a byte below the exponent 0x43 is that many above 128, exactly."""
    if TYPE == tl.bfloat16:
        return tl.inline_asm_elementwise(
            """{{{asm}
            }}""",
            "=&r,=&r,r", [x], dtype=tl.bfloat16, is_pure=True, pack=4,
        )
    return {text}'''


def narrow(expr: Expr) -> Narrow | None:
    """Read a weight made of bytes, else None."""
    zero = 0
    expr = _below_casts(expr)
    if expr.op in ("sub", "add") and expr.args[1].op == "const":
        value = float(expr.args[1].data) * (1 if expr.op == "sub" else -1)
        if value != int(value) or not 0 <= value <= 15:
            return None
        zero, expr = int(value), _below_casts(expr.args[0])
    if expr.op == "load" and expr.data[0].dtype == "int8" and not zero:
        return Narrow(expr, "bytes")
    if expr.op not in ("bitand", "shr") or expr.args[1].op != "const":
        return None
    number = expr.args[1].data
    if expr.op == "bitand" and number == 15:
        inner, bits = _below_casts(expr.args[0]), "low"
        if inner.op == "shr" and inner.args[1].op == "const" and inner.args[1].data == 4:
            inner, bits = _below_casts(inner.args[0]), "high"
    elif expr.op == "shr" and number == 4:
        inner, bits = _below_casts(expr.args[0]), "high"
        if inner.op != "load" or inner.data[0].dtype != "uint8":
            return None
    else:
        return None
    bytes_only = inner.op == "load" and inner.data[0].dtype in ("uint8", "int8")
    return Narrow(inner, bits, zero) if bytes_only else None


def _below_casts(expr: Expr) -> Expr:
    while expr.op == "cast" and expr.args[0].type != "b":
        expr = expr.args[0]
    return expr
