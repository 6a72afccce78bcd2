"""Write the source of a `bench.search.linear` design: kernels and the module that launches them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import indent

from bench.search.linear import EDITS, Kind

HEAD = """import torch
import triton
import triton.language as tl
from torch import nn
"""
LAUNCHED = {"WARPS": "num_warps", "STAGES": "num_stages", "REGISTERS": "maxnreg"}
"""Triton's names of the Tunables that are options of a launch."""
SIGMOID = {False: "1.0 / (1.0 + tl.exp(-z))", True: "1.0 / (1.0 + tl.exp2(z * -1.4426950408889634))"}


def source(kind: Kind, base: str, edits: frozenset[str], tunables: Mapping[str, list[int]]) -> str:
    """Return the module of a design. Its first Configuration is the first value of each list."""
    config = {name: values[0] for name, values in tunables.items()}
    about = f"# {base}" + "".join(f", {edit}" for edit in EDITS if edit in edits)
    head = f"{about}\n{HEAD}\nTUNABLES = {dict(tunables)!r}\nCONFIG = {config!r}\n\n\n"
    return head + body(kind, base, edits, tuple(tunables))


def body(kind: Kind, base: str, edits: frozenset[str], tunables: tuple[str, ...]) -> str:
    """Return kernels and module alone."""
    writer = _Writer(kind, base, edits, tunables)
    return writer.kernels() + writer.module()


@dataclass(frozen=True)
class _Writer:
    kind: Kind
    base: str
    edits: frozenset[str]
    tunables: tuple[str, ...]

    @property
    def split(self) -> bool:
        return self.base.startswith("split")

    @property
    def flipped(self) -> bool:
        return "transposed" in self.base

    @property
    def scaled_ahead(self) -> bool:
        return self.kind.normed and (self.split or "ahead" in self.edits)

    def constants(self) -> list[str]:
        """Return the kernel's constants: Tunables, and the known sizes."""
        kept = [name for name in self.tunables if name not in ("WARPS", "STAGES", "REGISTERS", "WAVES")]
        return kept + [name for name, edit in (("EVEN", "even"), ("TMA", "descriptors")) if edit in self.edits]

    def kernels(self) -> str:
        if self.base == "library":
            return self._join()
        if self.base == "vector":
            return self._vector()
        scales = _SCALES if self.scaled_ahead else ""
        return scales + self._product() + (self._join() if self.split else "")

    def _at(self, row: bool, k: bool = False) -> str:
        """Return an index as a column or a row of the tile: i or j (or k, next to i or j)."""
        upright = row != self.flipped
        if k:
            return "k[None, :]" if upright else "k[:, None]"
        name = "i" if row else "j"
        return f"{name}[:, None]" if upright else f"{name}[None, :]"

    def _finish(self, rows: str, columns: str) -> str:
        text = self.kind.finish.replace("{I}", rows).replace("{J}", columns)
        return text.replace("SIGMOID(z)", SIGMOID["quick" in self.edits])

    def _load(self, name: str, pointer: str, row: bool) -> str:
        """Load one operand, through a descriptor if there is one."""
        at, k = self._at(row), self._at(row, k=True)
        limit = "rows" if row else "n"
        wrapped = "wrapped" in self.edits
        inside = [] if wrapped else [f"({at} < {limit})"]
        index = f"({at} % {limit})" if wrapped else at
        if "even" in self.edits:
            some = " & ".join(inside) or "None"
            full = " & ".join([*inside, f"({k} < depth)"])
            mask = f"mask={some} if EVEN else {full}, other={'None if EVEN else 0' if wrapped else '0'}"
        else:
            mask = f"mask={' & '.join([*inside, f'({k} < depth)'])}, other=0"
        hint = "evict_first" if not row and "evict-weights" in self.edits else ""
        hint = "evict_last" if row and "keep-rows" in self.edits else hint
        policy = f', eviction_policy="{hint}"' if hint else ""
        plain = f"{name} = tl.load({pointer}_ptr + {index} * depth + {k}, {mask}{policy})\n"
        if "descriptors" not in self.edits:
            return plain
        first = "i0 * BM" if row else "j0 * BN"
        turned = ".T" if (row == self.flipped) else ""
        return f"if TMA:\n    {name} = {pointer}_desc.load([{first}, start]){turned}\nelse:\n    {plain}"

    def _product(self) -> str:
        kind, two = self.kind, bool(self.kind.second)
        shape = "[BN, BM]" if self.flipped else "[BM, BN]"
        pointers = ["x_ptr", "w_ptr", *(["v_ptr"] if two else []), *kind.pointers]
        if self.scaled_ahead:
            pointers.append("scales_ptr")
        outs = ["parts_ptr"] if self.split else ["out_ptr"]
        head = (
            f"@triton.jit\ndef product({', '.join([*pointers, *outs, 'rows', 'n', 'depth'])}, "
            + ", ".join(f"{name}: tl.constexpr" for name in self.constants())
            + "):\n"
        )
        ready = ""
        if "descriptors" in self.edits:
            made = [("x", "rows", "BM"), ("w", "n", "BN"), *([("v", "n", "BN")] if two else [])]
            ready = "if TMA:\n" + "".join(
                f"    {name}_desc = tl.make_tensor_descriptor({name}_ptr, shape=[{size}, depth], strides=[depth, 1],"
                f" block_shape=[{block}, BK])\n"
                for name, size, block in made
            )
        ready += "down = tl.cdiv(rows, BM)\nacross = tl.cdiv(n, BN)\n"
        body = self._order() + "i = i0 * BM + tl.arange(0, BM)\nj = j0 * BN + tl.arange(0, BN)\n"
        body += f"total = tl.zeros({shape}, tl.float32)\n" + (
            f"second = tl.zeros({shape}, tl.float32)\n" if two else ""
        )
        inline = kind.normed and not self.scaled_ahead
        body += "squares = tl.zeros([BM], tl.float32)\n" if inline else ""
        first, last = "0", "depth"
        if self.split:
            body += "span = tl.cdiv(tl.cdiv(depth, SPLIT), BK) * BK\nfirst = tl.program_id(1) * span\n"
            body += "last = tl.minimum(first + span, depth)\n"
            first, last = "first", "last"
        unrolled = ", loop_unroll_factor=2" if "unrolled" in self.edits else ""
        body += f"for start in tl.range({first}, {last}, BK{unrolled}):\n" + indent(self._step(inline, two), "    ")
        body += self._end(inline, two)
        if "persistent" in self.edits:
            body = "for tile in tl.range(tl.program_id(0), down * across, tl.num_programs(0)):\n" + indent(body, "    ")
        else:
            ready += "tile = tl.program_id(0)\n"
        return head + indent(ready + body, "    ") + "\n\n"

    def _order(self) -> str:
        if "swizzled" in self.edits:
            return (
                "band = tile // (GROUP * across)\n"
                "high = tl.minimum(down - band * GROUP, GROUP)\n"
                "within = tile - band * GROUP * across\n"
                "i0 = band * GROUP + within % high\n"
                "j0 = within // high\n"
            )
        if "columns-first" in self.edits:
            return "i0 = tile % down\nj0 = tile // down\n"
        return "i0 = tile // across\nj0 = tile % across\n"

    def _step(self, inline: bool, two: bool) -> str:
        kind = self.kind
        text = "k = start + tl.arange(0, BK)\n" + self._load("x", "x", True)
        if kind.normed:
            text += "gamma = tl.load(gamma_ptr + k, mask=k < depth, other=0.0).to(tl.float32)\n"
            gamma = "gamma[:, None]" if self.flipped else "gamma[None, :]"
            text += "wide = x.to(tl.float32)\n"
            text += f"squares += tl.sum(wide * wide, axis={0 if self.flipped else 1})\n" if inline else ""
            text += f"x = (wide * {gamma}).to(x.dtype)\n"
        text += self._load("w", "w", False) + (self._load("v", "v", False) if two else "")
        text += f"w = {self._cast('w', 'x.dtype')}\n" if kind.integers else ""
        for name, total in (("w", "total"), *([("v", "second")] if two else [])):
            pair = f"{name}, x" if self.flipped else f"x, {name}"
            if "wide" in self.edits:
                pair = ", ".join(f"{one}.to(tl.float32)" for one in pair.split(", "))
                text += f'{total} = tl.dot({pair}, {total}, input_precision="tf32")\n'
            elif "narrow" in self.edits:
                text += f"{total} += tl.dot({pair}).to(x.dtype).to(tl.float32)\n"
            else:
                text += f"{total} = tl.dot({pair}, {total})\n"
        return text

    def _cast(self, weights: str, kind: str) -> str:
        """Return weights as floating point.

        "magic" puts integers into a number's low bits, which needs no conversion.
        """
        if "magic" not in self.edits:
            return f"{weights}.to({kind})"
        return f"((({weights}.to(tl.int32) + 128) | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0).to({kind})"

    def _end(self, inline: bool, two: bool) -> str:
        at, across = self._at(True), self._at(False)
        inside = f"({at} < rows) & ({across} < n)"
        if self.split:
            store = "tl.atomic_add" if "atomic" in self.edits else "tl.store"
            extra = ', sem="relaxed"' if "atomic" in self.edits else ""
            part = "0" if "atomic" in self.edits else "tl.program_id(1)"
            last = "0" if "atomic" in self.edits else "SPLIT"
            text = f"place = {at}.to(tl.int64) * n + {across}\n"
            text += f"{store}(parts_ptr + {part} * rows * n + place, total, mask={inside}{extra})\n"
            if two:
                shift = "1" if "atomic" in self.edits else f"({last} + {part})"
                text += f"{store}(parts_ptr + {shift} * rows * n + place, second, mask={inside}{extra})\n"
            return text
        text = ""
        spread = "[None, :]" if self.flipped else "[:, None]"
        if inline:
            text += f"scale = tl.rsqrt(squares / depth + 1e-6){spread}\n"
        elif self.scaled_ahead:
            text += f"scale = tl.load(scales_ptr + i, mask=i < rows, other=0.0){spread}\n"
        text += self._finish(at, across)
        return text + f"tl.store(out_ptr + {at}.to(tl.int64) * n + {across}, y, mask={inside})\n"

    def _join(self) -> str:
        """Write the kernel that adds up parts, or finishes a library's result."""
        kind, two, library = self.kind, bool(self.kind.second), self.base == "library"
        pointers = ["parts_ptr", *(["more_ptr"] if library and two else []), *kind.pointers]
        if kind.normed:
            pointers.append("scales_ptr")
        constants = ["PARTS: tl.constexpr", "BLOCK: tl.constexpr"]
        text = "at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)\ninside = at < rows * n\n"
        text += "row = at // n\ncolumn = at % n\ntotal = tl.zeros([BLOCK], tl.float32)\n"
        text += "for part in tl.static_range(PARTS):\n"
        text += "    total += tl.load(parts_ptr + part * rows * n + at, mask=inside, other=0.0).to(tl.float32)\n"
        if two:
            text += "second = tl.zeros([BLOCK], tl.float32)\n"
            origin = "more_ptr + part * rows * n" if library else "parts_ptr + (PARTS + part) * rows * n"
            text += f"for part in tl.static_range(PARTS):\n    second += tl.load({origin} + at, mask=inside,"
            text += " other=0.0).to(tl.float32)\n"
        text += "scale = tl.load(scales_ptr + row, mask=inside, other=0.0)\n" if kind.normed else ""
        text += self._finish("row", "column") + "tl.store(out_ptr + at, y, mask=inside)\n"
        head = f"@triton.jit\ndef join({', '.join([*pointers, 'out_ptr', 'rows', 'n', *constants])}):\n"
        return head + indent(text, "    ") + "\n\n"

    def _vector(self) -> str:
        """Compute without tensor cores: a row at a time, sums over registers."""
        kind, two = self.kind, bool(self.kind.second)
        pointers = ["x_ptr", "w_ptr", *(["v_ptr"] if two else []), *kind.pointers]
        head = (
            f"@triton.jit\ndef product({', '.join([*pointers, 'out_ptr', 'rows', 'n', 'depth'])}, "
            + ", ".join(f"{name}: tl.constexpr" for name in self.constants())
            + "):\n"
        )
        hint = ', eviction_policy="evict_first"' if "evict-weights" in self.edits else ""
        keep = ', eviction_policy="evict_last"' if "keep-rows" in self.edits else ""
        even = "(j[:, None] < n) if EVEN else " if "even" in self.edits else ""
        mask = f"mask={even}(j[:, None] < n) & (k[None, :] < depth), other=0{hint}"
        text = "row = tl.program_id(1)\nj = tl.program_id(0) * BN + tl.arange(0, BN)\n"
        text += "sums = tl.zeros([BN, BK], tl.float32)\n" + ("more = tl.zeros([BN, BK], tl.float32)\n" if two else "")
        text += "squares = tl.zeros([BK], tl.float32)\n" if kind.normed else ""
        unrolled = ", loop_unroll_factor=2" if "unrolled" in self.edits else ""
        text += f"for start in tl.range(0, depth, BK{unrolled}):\n    k = start + tl.arange(0, BK)\n"
        text += f"    x = tl.load(x_ptr + row * depth + k, mask=k < depth, other=0{keep}).to(tl.float32)\n"
        if kind.normed:
            text += "    squares += x * x\n    x *= tl.load(gamma_ptr + k, mask=k < depth, other=0.0).to(tl.float32)\n"
        weights = f"tl.load(w_ptr + j[:, None] * depth + k[None, :], {mask})"
        text += f"    w = {self._cast(weights, 'tl.float32')}\n"
        text += "    sums += w * x[None, :]\n"
        if two:
            text += f"    v = tl.load(v_ptr + j[:, None] * depth + k[None, :], {mask}).to(tl.float32)\n"
            text += "    more += v * x[None, :]\n"
        text += "scale = tl.rsqrt(tl.sum(squares, axis=0) / depth + 1e-6)\n" if kind.normed else ""
        text += "total = tl.sum(sums, axis=1)\n" + ("second = tl.sum(more, axis=1)\n" if two else "")
        text += self._finish("row", "j") + "tl.store(out_ptr + row.to(tl.int64) * n + j, y, mask=j < n)\n"
        return head + indent(text, "    ") + "\n\n"

    def module(self) -> str:
        kind, two = self.kind, bool(self.kind.second)
        build = indent(f"super().__init__()\n{kind.build}", "        ")
        text = "x = x.contiguous()\nrows, depth = x.shape\n"
        text += f"w = {kind.weight}\n" + (f"v = {kind.second}\n" if two else "") + "n = w.shape[0]\n"
        text += "out = torch.empty((rows, n), dtype=x.dtype, device=x.device)\n"
        tensors = ["x", "w", *(["v"] if two else []), *kind.tensors]
        launch = [f'{name}=CONFIG["{name}"]' for name in self.constants() if name not in ("EVEN", "TMA")]
        launch += ["EVEN=depth % CONFIG['BK'] == 0"] if "even" in self.edits else []
        launch += ["TMA=depth % 16 == 0"] if "descriptors" in self.edits else []
        launch += [f'{word}=CONFIG["{name}"]' for name, word in LAUNCHED.items() if name in self.tunables]
        if "descriptors" in self.edits:
            text += "triton.set_allocator(lambda size, alignment, stream: "
            text += "torch.empty(size, device=x.device, dtype=torch.int8))\n"
        if self.base == "library":
            text += self._library(launch)
        elif self.base == "vector":
            text += f'product[(triton.cdiv(n, CONFIG["BN"]), rows)]({", ".join([*tensors, "out"])}, rows, n, depth,'
            text += f" {', '.join(launch)})\n"
        else:
            text += self._tiled(tensors, launch)
        return (
            f"class ModelNew(nn.Module):\n    def __init__(self, {kind.init}):\n{build}\n"
            f"    def forward(self, x):\n{indent(text, '        ')}        return out\n"
        )

    def _tiled(self, tensors: list[str], launch: list[str]) -> str:
        kind, two = self.kind, bool(self.kind.second)
        text = 'tiles = triton.cdiv(rows, CONFIG["BM"]) * triton.cdiv(n, CONFIG["BN"])\n'
        if self.scaled_ahead:
            text += "scales = torch.empty((rows,), dtype=torch.float32, device=x.device)\n"
            text += "scaled[(rows,)](x, scales, depth, BLOCK=triton.next_power_of_2(depth), num_warps=8)\n"
            tensors = [*tensors, "scales"]
        options = ", ".join(launch)
        if not self.split:
            grid = 'min(tiles, 132 * CONFIG["WAVES"])' if "persistent" in self.edits else "tiles"
            return text + f"product[({grid},)]({', '.join([*tensors, 'out'])}, rows, n, depth, {options})\n"
        atomic = "atomic" in self.edits
        count = ("2" if two else "1") if atomic else ('2 * CONFIG["SPLIT"]' if two else 'CONFIG["SPLIT"]')
        made = "zeros" if atomic else "empty"
        text += f"parts = torch.{made}(({count}, rows, n), dtype=torch.float32, device=x.device)\n"
        text += f'product[(tiles, CONFIG["SPLIT"])]({", ".join([*tensors, "parts"])}, rows, n, depth, {options})\n'
        ends = ["parts", *kind.tensors, *(["scales"] if kind.normed else []), "out", "rows", "n"]
        number = "1" if atomic else 'CONFIG["SPLIT"]'
        return text + f"join[(triton.cdiv(rows * n, 1024),)]({', '.join(ends)}, PARTS={number}, BLOCK=1024)\n"

    def _library(self, launch: list[str]) -> str:
        kind, two = self.kind, bool(self.kind.second)
        weight = "w.to(x.dtype)" if kind.integers else "w"
        text = f"first = torch.nn.functional.linear(x, {weight})\n"
        text += "second = torch.nn.functional.linear(x, v)\n" if two else ""
        ends = ["first", *(["second"] if two else []), *kind.tensors, "out", "rows", "n"]
        options = ", ".join(["PARTS=1", *launch])
        return text + f'join[(triton.cdiv(rows * n, CONFIG["BLOCK"]),)]({", ".join(ends)}, {options})\n'


_SCALES = """@triton.jit
def scaled(x_ptr, scales_ptr, depth, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * depth + k, mask=k < depth, other=0.0).to(tl.float32)
    tl.store(scales_ptr + row, tl.rsqrt(tl.sum(x * x, axis=0) / depth + 1e-6))


"""
