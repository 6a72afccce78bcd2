"""Write first drafts of kernels over rows, and the edits that an author makes of them one by one.

The draft: a program per row, which reads the row in blocks once for every sum, and once more to write the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from textwrap import indent

from bench.search.lattice import Lattice, launch_arguments, module_header

_EVERYWHERE = ("lanes", "even", "warps", "pipelined", "unrolled", "first-out", "registers")
_WRITTEN = ("resident", "together", "persistent", "keep", "backwards", "streaming-stores", "half")
_CLASH = (
    {"resident", "lanes"}, {"resident", "online"}, {"resident", "pipelined"}, {"resident", "unrolled"},
    {"resident", "keep"}, {"resident", "backwards"}, {"split", "together"}, {"split", "persistent"},
    {"keep", "first-out"},
)  # fmt: skip
LOG2E = "1.4426950408889634"


@dataclass(frozen=True)
class Rows:
    """An operation over rows.

    `load` makes `x` of a block (float32, {MASK} and {HINT} to be filled in), `write` stores the result. `signature` and
    `forward` are its module's; `forward` leaves {LAUNCH} for the launches, and names `rows` and `n`.
    """

    edits: tuple[str, ...]
    pointers: tuple[str, ...]
    arguments: tuple[str, ...]
    load: str
    signature: str
    forward: str
    init: str = ""
    write: str = ""
    norm: bool = False
    clash: tuple[set[str], ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)


SOFTMAX = Rows(
    edits=("online", *_EVERYWHERE, *_WRITTEN, "base-two", "skip", "reciprocal"),
    pointers=("x_ptr", "padding_ptr"),
    arguments=("scores", "padding", "rows", "n", "heads * queries", "self.scale"),
    load=(
        "padding = tl.load(padding_ptr + (i // group) * n + j, {MASK}, {ONE})\n"
        "x = tl.load(x_ptr + i * n + j, {SKIP}, {ZERO}{HINT}).to(tl.float32) * {SCALE}\n"
        'x = tl.where((padding != 0) | (j >= n), float("-inf"), x)\n'
    ),
    write="tl.store(out_ptr + i * n + j, {Y}, {MASK}{STORE})\n",
    signature="scores, padding",
    init="    def __init__(self, scale=0.125):\n        super().__init__()\n        self.scale = scale\n\n",
    forward=(
        "scores, padding = scores.contiguous(), padding.contiguous()\n"
        "batch, heads, queries, n = scores.shape\nrows = batch * heads * queries\nout = torch.empty_like(scores)\n"
        "{LAUNCH}return out\n"
    ),
)
LAYERNORM = Rows(
    edits=("one-pass", *_EVERYWHERE, *_WRITTEN, "rsqrt", "scaled-once"),
    pointers=("x_ptr", "weight_ptr", "bias_ptr"),
    arguments=("x", "self.weight", "self.bias", "rows", "n"),
    load="x = tl.load(x_ptr + i * n + j, {MASK}, {ZERO}{HINT}).to(tl.float32)\n",
    write=(
        "w = tl.load(weight_ptr + j, mask=j < n, other=0).to(tl.float32)\n"
        "b = tl.load(bias_ptr + j, mask=j < n, other=0).to(tl.float32)\n"
        "tl.store(out_ptr + i * n + j, {Y}, {MASK}{STORE})\n"
    ),
    signature="x",
    init=(
        '    def __init__(self, hidden, dtype="float32", eps=1e-5):\n        super().__init__()\n'
        "        kind = getattr(torch, dtype)\n        self.weight = nn.Parameter(torch.ones(hidden, dtype=kind))\n"
        "        self.bias = nn.Parameter(torch.zeros(hidden, dtype=kind))\n\n"
    ),
    forward="x = x.contiguous()\nrows, n = x.shape\nout = torch.empty_like(x)\n{LAUNCH}return out\n",
    norm=True,
    needs={"scaled-once": "rsqrt"},
)
CROSS_ENTROPY = Rows(
    edits=("online", *_EVERYWHERE, "base-two", "keep", "split", "together", "persistent", "half"),
    pointers=("x_ptr",),
    arguments=("logits", "rows", "n"),
    load="x = tl.load(x_ptr + i * n + j, {MASK}, {LEAST}{HINT}).to(tl.float32){TIMES}\n",
    clash=({"keep", "online"},),
    signature="logits, targets",
    forward=(
        "logits, targets = logits.contiguous(), targets.contiguous()\nrows, n = logits.shape\n"
        "out = torch.empty((rows,), dtype=torch.float32, device=logits.device)\n"
        "{LAUNCH}return out\n"
    ),
)


def lists(rows: Rows, edits: frozenset[str]) -> dict[str, list[int]]:
    """Return the values that an author would list for each Tunable, in full."""
    found = {} if "resident" in edits else {"BLOCK": [1024, 2048, 512, 4096]}
    more = {
        "together": ("ROWS", [2, 1] if "resident" in edits else [2, 4, 1]), "warps": ("WARPS", [8, 4, 16, 2]),
        "pipelined": ("STAGES", [3, 2, 4]), "persistent": ("WAVES", [4, 2, 8, 1]), "split": ("SPLIT", [4, 2, 8]),
        "registers": ("REGISTERS", [64, 128, 32]),
    }  # fmt: skip
    return found | {name: values for edit, (name, values) in more.items() if edit in edits}


def source(rows: Rows, edits: frozenset[str], tunables: Mapping[str, list[int]]) -> str:
    """Return the module of a design. Its first Configuration is the first value of each list."""
    writer = _Writer(rows, edits, tunables)
    return module_header(lattice_of(rows), edits, tunables) + writer.kernel() + writer.joining() + writer.module()


def lattice_of(rows: Rows) -> Lattice:
    clash = tuple(frozenset(pair) for pair in (*_CLASH, *rows.clash))
    return Lattice(rows.edits, rows.needs, clash, ("half",), partial(lists, rows), partial(source, rows))


@dataclass(frozen=True)
class _Writer:
    rows: Rows
    edits: frozenset[str]
    tunables: Mapping[str, list[int]]

    @property
    def two(self) -> tuple[str, str]:
        """Return the exponential and its inverse."""
        return ("tl.exp2", "tl.log2") if "base-two" in self.edits else ("tl.exp", "tl.log")

    @property
    def losses(self) -> bool:
        return not self.rows.write

    def _filled(self, text: str, hint: str = "") -> str:
        """Return a load or a store with its masks and hints."""
        inside = "(i < rows) & (j < n)"
        even = "even" in self.edits
        mask = f"mask={inside} if not EVEN else None" if even else f"mask={inside}"
        skip = f"mask={inside} & (padding == 0)" if "skip" in self.edits else mask
        other = "other={} if not EVEN else None" if even else "other={}"
        scale = "scale" if "base-two" not in self.edits else f"(scale * {LOG2E})"
        times = f" * {LOG2E}" if "base-two" in self.edits else ""
        zero = "other=0" if "skip" in self.edits else other.format("0")
        words = {
            "{MASK}": mask, "{SKIP}": skip, "{ZERO}": zero, "{ONE}": other.format("1"),
            "{LEAST}": other.format('float("-inf")'), "{SCALE}": scale, "{TIMES}": times, "{HINT}": hint,
            "{STORE}": ', cache_modifier=".cs"' if "streaming-stores" in self.edits else "",
        }  # fmt: skip
        for word, meant in words.items():
            text = text.replace(word, meant)
        return text.replace(".to(tl.float32)", "") if "half" in self.edits else text

    def _load(self, again: bool, last: bool) -> str:
        """Load one block as `x`. `again`: it will be read once more, `last`: it was read before."""
        hint = "evict_last" if "keep" in self.edits and again else ""
        hint = "evict_first" if ("keep" in self.edits and last) or "first-out" in self.edits else hint
        return self._filled(self.rows.load, f', eviction_policy="{hint}"' if hint else "")

    def _loop(self, step: str, backwards: bool = False) -> str:
        """Loop over the blocks of a row."""
        if "resident" in self.edits:
            return "j = tl.arange(0, BLOCK)[None, :]\n" + step
        first, last = ("first", "last") if "split" in self.edits else ("0", "n")
        how = ", loop_unroll_factor=2" if "unrolled" in self.edits else ""
        how += ", num_stages=STAGES" if "pipelined" in self.edits else ""
        start = "(tl.cdiv(n, BLOCK) - 1) * BLOCK - at" if backwards else "at"
        text = f"j = {start} + tl.arange(0, BLOCK)[None, :]\n" + step
        return f"for at in tl.range({first}, {last}, BLOCK{how}):\n" + indent(text, "    ")

    def _sum(self, name: str, what: str, more: str = "sum") -> tuple[str, str, str]:
        """Return the lines of a sum over a row: before, in, and after the loop."""
        joined = f"tl.{more}({{}}, axis=1)[:, None]"
        least = 'float("-inf")' if more == "max" else "0.0"
        add = f"{name} = tl.maximum({name}, {{}})\n" if more == "max" else f"{name} += {{}}\n"
        if "resident" in self.edits:
            return "", f"{name} = {joined.format(what)}\n", ""
        if "lanes" in self.edits:
            made = f"{name} = tl.full([ROWS, BLOCK], {least}, tl.float32)\n"
            return made, add.format(what), f"{name} = {joined.format(name)}\n"
        return f"{name} = tl.full([ROWS, 1], {least}, tl.float32)\n", add.format(joined.format(what)), ""

    def _pass(self, sums: list[tuple[str, str, str]], *, last: bool) -> str:
        before, inside, behind = ("".join(part) for part in zip(*sums, strict=True))
        load = self._load(again=not (last and self.losses), last=last and self.losses)
        return before + self._loop(load + inside) + behind

    def _statistics(self) -> str:
        exp = self.two[0]
        if self.rows.norm and "one-pass" in self.edits:
            squares = self._sum("squares", "x * x")
            text = self._pass([self._sum("mean", "x"), squares], last=True)
            return text + "mean = mean / n\nvariance = squares / n - mean * mean\n"
        if self.rows.norm:
            inside = self._sum("variance", "tl.where(j < n, (x - mean) * (x - mean), 0.0)")
            if "resident" in self.edits:
                before, at, _ = self._sum("mean", "x")
                return self._pass(
                    [(before, f"{at}mean = mean / n\n{inside[1]}variance = variance / n\n", "")], last=True
                )
            text = self._pass([self._sum("mean", "x")], last=False) + "mean = mean / n\n"
            return text + self._pass([inside], last=True) + "variance = variance / n\n"
        if "online" in self.edits:
            return self._online(exp)
        peak = self._sum("peak", "x", "max")
        total = self._sum("total", f"{exp}(x - peak)")
        if "resident" in self.edits:
            return self._pass([peak, total], last=True)
        return self._pass([peak], last=False) + self._pass([total], last=True)

    def _online(self, exp: str) -> str:
        """Compute peak and total in one pass; the total shrinks when the peak grows."""
        lanes = "lanes" in self.edits
        shape = "[ROWS, BLOCK]" if lanes else "[ROWS, 1]"
        text = f'peak = tl.full({shape}, float("-inf"), tl.float32)\ntotal = tl.zeros({shape}, tl.float32)\n'
        if lanes:
            step = "larger = tl.maximum(peak, x)\n"
            step += 'safe = tl.where(larger == float("-inf"), 0.0, larger)\n'
            step += f"total = total * {exp}(peak - safe) + {exp}(x - safe)\npeak = larger\n"
        else:
            step = "larger = tl.maximum(peak, tl.max(x, axis=1)[:, None])\n"
            step += 'safe = tl.where(larger == float("-inf"), 0.0, larger)\n'
            step += f"total = total * {exp}(peak - safe) + tl.sum({exp}(x - safe), axis=1)[:, None]\npeak = larger\n"
        text += self._loop(self._load(again=not self.losses, last=False) + step)
        if lanes:
            text += "most = tl.max(peak, axis=1)[:, None]\n"
            text += 'safe = tl.where(most == float("-inf"), 0.0, most)\n'
            text += f"total = tl.sum(total * {exp}(peak - safe), axis=1)[:, None]\npeak = most\n"
        return text

    def _result(self) -> str:
        """Return the written value of `x`."""
        if not self.rows.norm:
            return f"{self.two[0]}(x - peak)" + (" * inverse" if "reciprocal" in self.edits else " / total")
        centred = "x * inverse - shift" if "scaled-once" in self.edits else "(x - mean)"
        how = "" if "scaled-once" in self.edits else " * inverse" if "rsqrt" in self.edits else " / deviation"
        return f"({centred}{how}) * w + b"

    def _written(self) -> str:
        """Write the last pass over a row, or the loss."""
        if self.losses:
            log = self.two[1]
            if "split" in self.edits:
                place = "i * SPLIT + tl.program_id(1)"
                return f"tl.store(peak_ptr + {place}, peak)\ntl.store(total_ptr + {place}, total)\n"
            text = "target = tl.load(targets_ptr + i, mask=i < rows, other=0)\n"
            text += "x = tl.load(x_ptr + i * n + target, mask=i < rows, other=0).to(tl.float32)\n"
            unit = " * 0.6931471805599453" if "base-two" in self.edits else ""
            return text + f"tl.store(out_ptr + i, (peak + {log}(total)){unit} - x, mask=i < rows)\n"
        text = ""
        if self.rows.norm:
            text += "inverse = tl.rsqrt(variance + 1e-5)\n" if "rsqrt" in self.edits else ""
            text += "" if "rsqrt" in self.edits else "deviation = tl.sqrt(variance + 1e-5)\n"
            text += "shift = mean * inverse\n" if "scaled-once" in self.edits else ""
        elif "reciprocal" in self.edits:
            text += "inverse = 1.0 / total\n"
        write = self._filled(self.rows.write).replace("{Y}", self._result())
        if "resident" in self.edits:
            return text + write
        return text + self._loop(self._load(again=False, last=True) + write, "backwards" in self.edits)

    def constants(self) -> list[str]:
        kept = [name for name in self.tunables if name not in ("WARPS", "WAVES", "REGISTERS", "ROWS", "BLOCK")]
        return ["ROWS", "BLOCK", *kept, *(["EVEN"] if "even" in self.edits else [])]

    def kernel(self) -> str:
        outs = ["peak_ptr", "total_ptr"] if "split" in self.edits else ["targets_ptr"] if self.losses else []
        outs += [] if "split" in self.edits else ["out_ptr"]
        scalars = ["rows", "n", *(["group", "scale"] if "padding_ptr" in self.rows.pointers else [])]
        names = [*self.rows.pointers, *outs, *scalars, *(f"{name}: tl.constexpr" for name in self.constants())]
        persistent = "persistent" in self.edits
        body = (
            f"i = ({'tile' if persistent else 'tl.program_id(0)'} * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]\n"
        )
        if "split" in self.edits:
            body += "span = tl.cdiv(tl.cdiv(n, SPLIT), BLOCK) * BLOCK\n"
            body += "first = tl.program_id(1) * span\nlast = tl.minimum(first + span, n)\n"
        body += self._statistics() + self._written()
        if persistent:
            loop = "for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):\n"
            body = loop + indent(body, "    ")
        return f"@triton.jit\ndef kernel({', '.join(names)}):\n" + indent(body, "    ") + "\n\n"

    def joining(self) -> str:
        """Write the kernel that joins the parts of a row."""
        if "split" not in self.edits:
            return ""
        exp, log = self.two
        unit = " * 0.6931471805599453" if "base-two" in self.edits else ""
        return (
            "@triton.jit\ndef join(x_ptr, targets_ptr, peak_ptr, total_ptr, out_ptr, n, SPLIT: tl.constexpr):\n"
            "    i = tl.program_id(0).to(tl.int64)\n    part = tl.arange(0, SPLIT)\n"
            "    peaks = tl.load(peak_ptr + i * SPLIT + part)\n    totals = tl.load(total_ptr + i * SPLIT + part)\n"
            f"    peak = tl.max(peaks, axis=0)\n    total = tl.sum(totals * {exp}(peaks - peak), axis=0)\n"
            "    x = tl.load(x_ptr + i * n + tl.load(targets_ptr + i)).to(tl.float32)\n"
            f"    tl.store(out_ptr + i, (peak + {log}(total)){unit} - x)\n\n\n"
        )

    def module(self) -> str:
        edits = self.edits
        many = 'CONFIG["ROWS"]' if "together" in edits else "1"
        block = "triton.next_power_of_2(n)" if "resident" in edits else 'CONFIG["BLOCK"]'
        grid = f"triton.cdiv(rows, {many})" if "together" in edits else "rows"
        grid = f'min({grid}, 132 * CONFIG["WAVES"])' if "persistent" in edits else grid
        grid += ', CONFIG["SPLIT"]' if "split" in edits else ","
        given = [*self.rows.arguments]
        text = ""
        if "split" in edits:
            text += 'peak = torch.empty((rows, CONFIG["SPLIT"]), dtype=torch.float32, device=logits.device)\n'
            text += "total = torch.empty_like(peak)\n"
        outs = ["peak", "total"] if "split" in edits else ["targets", "out"] if self.losses else ["out"]
        at = given.index("rows")
        given = [*given[:at], *outs, *given[at:], f"ROWS={many}", f"BLOCK={block}"]
        given += [launch_arguments({name: []}) if name in ("WARPS", "REGISTERS") else f'{name}=CONFIG["{name}"]'
                  for name in self.tunables if name not in ("ROWS", "BLOCK", "WAVES")]  # fmt: skip
        if "even" in edits:
            given.append(f"EVEN=n % {block} == 0 and rows % {many} == 0")
        text += f"kernel[({grid})]({', '.join(given)})\n"
        if "split" in edits:
            text += 'join[(rows,)](logits, targets, peak, total, out, n, SPLIT=CONFIG["SPLIT"], num_warps=1)\n'
        body = self.rows.forward.replace("{LAUNCH}", text)
        head = f"class ModelNew(nn.Module):\n{self.rows.init}    def forward(self, {self.rows.signature}):\n"
        return head + indent(body, " " * 8)
