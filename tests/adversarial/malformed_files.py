"""Files that are no Candidates: text that does not parse, modules that do not load, classes that do not construct.

Each is a name, its bytes, and the Verdicts that it may get; `FILES` is all of them. They answer problems/rmsnorm.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from evaluator.types import Verdict

INVALID, RUNTIME, BUILD = Verdict.INVALID_SUBMISSION, Verdict.RUNTIME_ERROR, Verdict.BUILD_ERROR
TIMEOUT, OOM, SHAPE, PASSED = Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY, Verdict.INCORRECT_SHAPE, Verdict.PASSED
VALUES = Verdict.INCORRECT_VALUES

PLAIN = """import ctypes
import os
import signal
import sys
import threading
import time

import torch


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return right(x, self.weight)
"""


@dataclass(frozen=True, slots=True)
class File:
    """`limit_s`: a stage's limit that this file runs into, shortened for the test. `part`: who made it."""

    part: str
    name: str
    data: bytes
    verdicts: frozenset[Verdict]
    limit_s: float | None = None


FILES: list[File] = []
_PART = [""]


@contextmanager
def part(name: str) -> Iterator[None]:
    """This function makes the added part."""
    _PART.append(name)
    yield
    _PART.pop()


def add(name: str, data: bytes | str, *verdicts: Verdict, limit_s: float | None = None) -> None:
    raw = data.encode() if isinstance(data, str) else data
    FILES.append(File(_PART[-1], name, raw, frozenset(verdicts), limit_s))


def at_import(name: str, code: str, *verdicts: Verdict, limit_s: float | None = None) -> None:
    add(name, PLAIN + "\n\n" + code + "\n", *verdicts, limit_s=limit_s)


def constructor(name: str, code: str, *verdicts: Verdict, limit_s: float | None = None) -> None:
    add(name, PLAIN.replace("        super().__init__()\n", f"        {code}\n", 1), *verdicts, limit_s=limit_s)


def forward(name: str, code: str, *verdicts: Verdict, limit_s: float | None = None) -> None:
    body = code.replace("\n", "\n        ")
    add(name, PLAIN.replace("return right(x, self.weight)", body), *verdicts, limit_s=limit_s)


def _text() -> None:
    """Files that are not valid Python."""
    nested = "(" * 150 + ")" * 150
    noise = random.Random(5).randbytes(4000)
    add("empty", b"", INVALID)
    add("blank", b" \n\t\n\n", INVALID)
    add("only comments", "# a kernel\n# will follow\n", INVALID)
    add("only a docstring", '"""A kernel."""\n', INVALID)
    add("syntax error", PLAIN + "class ModelNew(:\n", INVALID)
    add("cut off in a string", PLAIN + 'SOURCE = r"""\n#include <cmath>\nextern "C" void f(', INVALID)
    add("cut off in a class", PLAIN[: PLAIN.index("def forward")] + "def", INVALID)
    add("cut off in a character", PLAIN.encode() + "# é".encode()[:-1], INVALID)
    add("markdown fences", f"```python\n{PLAIN}```\n", INVALID)
    add("prose around fences", f"Here is the kernel:\n\n```python\n{PLAIN}```\nIt is 10x faster.\n", INVALID)
    add("only prose", "I am sorry, but I cannot write this kernel.\n", INVALID)
    add("a diff", "--- a/kernel.py\n+++ b/kernel.py\n@@ -1,3 +1,3 @@\n-import torch\n+import triton\n", INVALID)
    add("json", '{"code": "import torch", "language": "python"}\n', INVALID)
    add("html", "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>\n", INVALID)
    add("C++ alone", '#include <cmath>\nextern "C" void f() {}\n', INVALID)
    add("latin-1 bytes", PLAIN.encode() + b"# caf\xe9\n", INVALID)
    add("random bytes", noise, INVALID)
    add("a PNG", b"\x89PNG\r\n\x1a\n" + noise, INVALID)
    add("an ELF file", b"\x7fELF\x02\x01\x01" + bytes(9) + noise, INVALID)
    add("a pickle", b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93.", INVALID)
    add("compiled Python", b"\xa7\r\r\n" + bytes(12) + noise, INVALID)
    add("NUL bytes at the end", PLAIN.encode() + b"\0\0\0", INVALID)
    add("a NUL byte in a string", PLAIN + 'X = "a\0b"\n', INVALID)
    add("UTF-16 with a mark", PLAIN.encode("utf-16"), INVALID)
    add("UTF-16 without a mark", PLAIN.encode("utf-16-le"), INVALID)
    add("UTF-32", PLAIN.encode("utf-32"), INVALID)
    add("overlong UTF-8", PLAIN.encode() + b"# \xc0\xaf\n", INVALID)
    add("encoded surrogates", PLAIN.encode() + b"# \xed\xa0\x80\n", INVALID)
    add("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbf" + PLAIN.encode(), INVALID)
    add("five megabytes of comments", PLAIN + "# padding padding padding\n" * 200_000, INVALID)
    add("five megabytes of one line", PLAIN + "X = '" + "x" * 5_000_000 + "'\n", INVALID)
    add("five megabytes of zeros", bytes(5 << 20), INVALID)
    add("nested parentheses", PLAIN + f"X = {nested}\n", INVALID, PASSED)
    add("thousands of parentheses", PLAIN + "X = " + "(" * 50_000 + "1" + ")" * 50_000 + "\n", INVALID)
    add("thousands of brackets, open", PLAIN + "X = " + "[" * 100_000 + "\n", INVALID)
    add("thousands of minus signs", PLAIN + "X = " + "-" * 50_000 + "1\n", INVALID)
    add("thousands of nots", PLAIN + "X = " + "not " * 50_000 + "1\n", INVALID)
    add("a hundred thousand additions", PLAIN + "X = " + "1+" * 100_000 + "1\n", INVALID)
    add("thousands of attributes", PLAIN + "X = lambda a: a" + ".a" * 20_000 + "\n", INVALID)
    add("thousands of calls", PLAIN + "X = lambda a: a" + "()" * 20_000 + "\n", INVALID)
    add(
        "a hundred blocks deep",
        PLAIN + "".join(" " * i + "if 1:\n" for i in range(110)) + " " * 110 + "X = 1\n",
        INVALID,
    )
    add("thousands of elifs", PLAIN + "if 0:\n    X = 1\n" + "elif 0:\n    X = 1\n" * 5_000, INVALID, PASSED)
    add("a decorator tower", PLAIN + "@(lambda f: f)\n" * 5_000 + "def g():\n    pass\n", INVALID, PASSED)
    add("mixed tabs and spaces", PLAIN + "if 1:\n        X = 1\n\tY = 2\n", INVALID)
    add("an await outside", PLAIN + "await X\n", INVALID)
    add("a return outside", PLAIN + "return ModelNew\n", INVALID, RUNTIME)
    add("Python 2", PLAIN + 'print "hello"\n', INVALID)
    add("typographic quotes", PLAIN + "X = “text”\n", INVALID)
    add("a huge decimal number", PLAIN + "X = 1" + "0" * 5_000 + "\n", INVALID)


def _legal_but_hard() -> None:
    """Legal Python that a careless reader chokes on."""
    add("a huge hexadecimal number", PLAIN + "X = 0x" + "f" * 20_000 + "\n", PASSED)
    add("six hundred additions", PLAIN + "X = " + "1+" * 600 + "1\n", PASSED)
    add("eight hundred concatenations", PLAIN + "X = " + " + ".join(["''"] * 800) + "\n", PASSED, INVALID)
    add("a chain of comparisons", PLAIN + "X = 1" + " < 2" * 3_000 + "\n", PASSED, INVALID)
    add("a long boolean", PLAIN + "X = " + " or ".join(["0"] * 5_000) + "\n", PASSED)
    add("a declared encoding that is none", "# coding: no-such-codec\n" + PLAIN, INVALID)
    add("a declared encoding that is no text", "# coding: rot13\n" + PLAIN, INVALID)
    add("a declared encoding of two bytes", "# coding: utf-16\n" + PLAIN, INVALID)
    add("no newline at the end", PLAIN.rstrip(), PASSED)
    add("form feeds and vertical tabs", PLAIN.replace("\n\n\n", "\n\f\n\f\n"), PASSED)
    add("control-Z at the end", PLAIN.encode() + b"\x1a", INVALID)
    add("nan and infinity as literals", PLAIN + "X = 1e999 - 1e999, -1e999\n", PASSED)
    add("a surrogate escape in a string", PLAIN + "X = '\\ud800'\n", PASSED)
    add("a class that is deleted", PLAIN + "del ModelNew\n", INVALID)


def _no_model() -> None:
    """Modules without a usable class."""
    other = PLAIN.replace("ModelNew", "Model")
    add("no ModelNew", other, INVALID)
    add("ModelNew in lower case", PLAIN.replace("ModelNew", "modelnew"), INVALID)
    add("ModelNew is a function", other + "\n\ndef ModelNew(hidden, eps=1e-6):\n    return Model(hidden)\n", INVALID)
    add("ModelNew is an instance", other + "\n\nModelNew = Model(8)\n", INVALID, RUNTIME)
    add("ModelNew is a number", other + "\n\nModelNew = 7\n", INVALID, RUNTIME)
    add("ModelNew is None", other + "\n\nModelNew = None\n", INVALID, RUNTIME)
    add("ModelNew is a module", other + "\n\nimport torch as ModelNew\n", INVALID, RUNTIME)
    add(
        "ModelNew is no Module", other + "\n\nclass ModelNew:\n    def __init__(self, hidden):\n        pass\n", INVALID
    )
    add("ModelNew makes a string", other + "\n\nclass ModelNew(str):\n    pass\n", INVALID, RUNTIME)
    add("ModelNew inside a function", other + "\n\ndef f():\n    class ModelNew(Model):\n        pass\n", INVALID)
    add("ModelNew under a false condition", other + "\n\nif 0:\n    class ModelNew(Model):\n        pass\n", INVALID)
    add("no forward", PLAIN[: PLAIN.index("    def forward")], RUNTIME, INVALID)
    add("forward is a number", PLAIN + "\n    forward = 3\n", RUNTIME, INVALID)
    add("an abstract class", PLAIN.replace("(torch.nn.Module)", "(torch.nn.Module, metaclass=__import__('abc').ABCMeta)")
        + "\n    import abc\n    @abc.abstractmethod\n    def g(self):\n        pass\n", RUNTIME, INVALID)  # fmt: skip


def _at_import() -> None:
    """Modules that misbehave when they are loaded."""
    at_import("a missing package", "import nowhere_to_be_found", RUNTIME, INVALID, BUILD)
    at_import("a name that does not exist", "torch.no_such_operation", RUNTIME, INVALID)
    at_import("raises", "raise ValueError('not today')", RUNTIME)
    at_import("asserts", "assert False", RUNTIME)
    at_import("raises KeyboardInterrupt", "raise KeyboardInterrupt", RUNTIME)
    at_import("raises GeneratorExit", "raise GeneratorExit", RUNTIME)
    at_import("raises StopIteration", "raise StopIteration", RUNTIME)
    at_import("raises an exception group", "raise ExceptionGroup('many', [ValueError(), TypeError()])", RUNTIME)
    at_import("sys.exit", "sys.exit(0)", RUNTIME)
    at_import("os._exit", "os._exit(0)", RUNTIME)
    at_import("abort", "os.abort()", RUNTIME)
    at_import("segfault", "ctypes.string_at(0)", RUNTIME)
    at_import("kills itself", "os.kill(os.getpid(), signal.SIGKILL)", RUNTIME)
    at_import("divides by zero in C", "os.kill(os.getpid(), signal.SIGFPE)", RUNTIME)
    at_import("reads standard input", "if input():\n    raise SystemExit", RUNTIME)
    at_import("sleeps", "time.sleep(3600)", TIMEOUT, limit_s=1.0)
    at_import("loops", "while True:\n    pass", TIMEOUT, limit_s=1.0)
    at_import("ignores every signal and sleeps", "for n in range(1, 32):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n"
              "    except OSError:\n        pass\ntime.sleep(3600)", TIMEOUT, limit_s=1.0)  # fmt: skip
    at_import("waits for a lock", "threading.Lock().acquire() and threading.Thread(target=time.sleep).join\n"
              "a = threading.Lock()\na.acquire()\na.acquire()", TIMEOUT, limit_s=1.0)  # fmt: skip
    at_import("recurses", "def f():\n    return f()\n\n\nf()", RUNTIME)
    at_import(
        "recurses in C",
        "sys.setrecursionlimit(10**9)\n\n\ndef f():\n    return max([1], key=lambda _: f())\n\n\nf()",
        RUNTIME,
    )
    at_import("takes all memory", "kept = bytearray(1 << 42)", OOM, RUNTIME)
    at_import("takes memory bit by bit", "kept = []\nwhile True:\n    kept.append(bytearray(256 << 20))", OOM)
    at_import("prints fifty megabytes", "for _ in range(800):\n    os.write(1, b'x' * 65536)", PASSED)
    at_import("prints without newlines to stderr", "sys.stderr.write('e' * 3_000_000)", PASSED)
    at_import("prints bytes that are no text", "os.write(2, bytes(range(256)) * 100)", PASSED)
    at_import("prints escapes", "print('\\x1b[2J\\x1b]0;title\\x07' * 1000)", PASSED)
    at_import("closes its descriptors", "os.closerange(0, 3)", PASSED)
    at_import("closes sys.stdout", "sys.stdout.close()\nsys.stderr = None", PASSED, Verdict.REWARD_HACK)
    at_import("changes its folder", "os.chdir('/')", PASSED)
    at_import("removes its folder", "import shutil\nshutil.rmtree('/tmp', ignore_errors=True)", PASSED)
    at_import("hangs at exit", "import atexit\natexit.register(time.sleep, 3600)", PASSED)
    at_import("an orphan holds its output", "if os.fork() == 0:\n    time.sleep(3600)", PASSED)
    at_import(
        "threads that never end",
        "for _ in range(20):\n    threading.Thread(target=time.sleep, args=(3600,)).start()",
        PASSED,
    )
    at_import("an import that replaces itself", "sys.modules[__name__] = None", PASSED, RUNTIME, INVALID)
    at_import("clears sys.modules", "sys.modules.clear()", PASSED, RUNTIME)
    at_import("no recursion left", "sys.setrecursionlimit(60)", PASSED, RUNTIME)


def _constructor() -> None:
    """Classes that do not construct."""
    constructor("no super().__init__()", "pass", RUNTIME)
    constructor("raises in the constructor", "raise RuntimeError('no')", RUNTIME)
    constructor("sleeps in the constructor", "time.sleep(3600)", TIMEOUT, limit_s=1.0)
    constructor("sys.exit in the constructor", "sys.exit(1)", RUNTIME)
    constructor("segfault in the constructor", "ctypes.string_at(0)", RUNTIME)
    add(
        "takes no arguments",
        PLAIN.replace("def __init__(self, hidden, eps=1e-6):", "def __init__(self):\n        hidden = 96"),
        RUNTIME,
        INVALID,
    )
    add("wants one argument more", PLAIN.replace("hidden, eps=1e-6", "hidden, eps"), RUNTIME, INVALID)
    add(
        "returns from the constructor",
        PLAIN.replace("    def forward", "        return 5\n\n    def forward"),
        RUNTIME,
        INVALID,
    )
    add("parameters missing", PLAIN.replace("torch.nn.Parameter(torch.ones(hidden))", "torch.ones(hidden)"), INVALID)
    add(
        "a parameter too many",
        PLAIN.replace("    def forward", "        self.more = torch.nn.Parameter(torch.ones(3))\n\n    def forward"),
        INVALID,
    )
    add(
        "a parameter on the meta device",
        PLAIN.replace("torch.ones(hidden)", "torch.ones(hidden, device='meta')"),
        INVALID,
        RUNTIME,
    )
    add(
        "a lazy parameter",
        PLAIN.replace("torch.nn.Parameter(torch.ones(hidden))", "torch.nn.UninitializedParameter()"),
        INVALID,
        RUNTIME,
    )
    add(
        "a parameter of another type",
        PLAIN.replace("torch.ones(hidden)", "torch.ones(hidden, dtype=torch.float16)"),
        INVALID,
        VALUES,
    )
    add("cannot be copied", PLAIN + "\n    def __deepcopy__(self, memo):\n        raise TypeError\n", PASSED)
    add("cannot be moved", PLAIN + "\n    def to(self, *args):\n        raise TypeError('stays')\n", RUNTIME, PASSED)
    add(
        "train() returns nothing", PLAIN + "\n    def train(self, mode=True):\n        pass\n", RUNTIME, PASSED, INVALID
    )
    add(
        "hides its parameters",
        PLAIN + "\n    def named_parameters(self, *args, **kwargs):\n        return iter(())\n",
        INVALID,
    )
    add("endless parameters", PLAIN + "\n    def named_parameters(self, *args, **kwargs):\n        while True:\n            yield 'w', self.weight\n",
        OOM, TIMEOUT, RUNTIME, INVALID, limit_s=1.5)  # fmt: skip


def _forward() -> None:
    """Classes whose forward goes wrong."""
    forward("raises in forward", "raise KeyError('x')", RUNTIME)
    forward(
        "raises on the third call",
        "self.n = getattr(self, 'n', 0) + 1\nif self.n == 3:\n    raise KeyError('x')\nreturn right(x, self.weight)",
        RUNTIME,
    )
    forward("raises KeyboardInterrupt in forward", "raise KeyboardInterrupt", RUNTIME)
    forward("raises MemoryError", "raise MemoryError", OOM)
    forward("raises an error with NUL in it", "raise ValueError('a\\0b\\ud800 \\x1b[31m' + 'x' * 100000)", RUNTIME)
    forward(
        "raises an error whose text hangs",
        "class E(Exception):\n    def __str__(self):\n        while True:\n            pass\nraise E",
        TIMEOUT,
        limit_s=1.0,
    )
    forward(
        "raises an error whose text raises",
        "class E(Exception):\n    def __str__(self):\n        raise self\nraise E",
        RUNTIME,
    )
    forward(
        "raises an error whose text is no text", "class E(Exception):\n    __str__ = lambda self: 5\nraise E", RUNTIME
    )
    forward("raises an error with a hostile name", "raise type('\\0' * 5000, (Exception,), {})('x')", RUNTIME)
    forward(
        "pretends that it does not compile", "raise type('CompileError', (Exception,), {})('line 1')", BUILD, RUNTIME
    )
    forward("wants two arguments", "return self(x, x)", RUNTIME)
    add("a signature that does not fit", PLAIN.replace("def forward(self, x)", "def forward(self)"), RUNTIME)
    forward("loops in forward", "while True:\n    pass", TIMEOUT, limit_s=1.0)
    forward(
        "waits for itself",
        "t = threading.Thread(target=time.sleep, args=(3600,))\nt.start()\nt.join()",
        TIMEOUT,
        limit_s=1.0,
    )
    forward("recurses in forward", "return self.forward(x)", RUNTIME)
    forward(
        "overflows the C stack",
        "sys.setrecursionlimit(10**9)\nf = lambda: max([1], key=lambda _: f())\nreturn f()",
        RUNTIME,
    )
    forward("segfault in forward", "ctypes.string_at(0)", RUNTIME)
    forward("abort in forward", "os.abort()", RUNTIME)
    forward("SIGTERM", "os.kill(os.getpid(), signal.SIGTERM)", RUNTIME)
    forward("huge allocation", "return torch.empty(1 << 42)", OOM)
    forward("memory in one step", "kept = bytearray(6 << 30)\nreturn x", OOM)
    forward("returns None", "return None", SHAPE)
    forward("returns a tuple", "return (right(x, self.weight),)", SHAPE)
    forward("returns a generator", "yield right(x, self.weight)", SHAPE)
    forward("returns a class", "return torch.Tensor", SHAPE)
    forward("returns itself in a list", "y = []\ny.append(y)\nreturn y", RUNTIME, SHAPE)
    forward("returns a thousand tensors", "return [x] * 1000", SHAPE, RUNTIME)
    forward("returns nested lists", "y = x\nfor _ in range(900):\n    y = [y]\nreturn y", RUNTIME, SHAPE)
    forward("returns a dict with odd keys", "return {('a', 1): x, None: x}", SHAPE)
    forward("returns complex numbers", "return torch.complex(x, x)", Verdict.INCORRECT_DTYPE)
    forward("returns booleans", "return x > 0", Verdict.INCORRECT_DTYPE)
    forward("returns nothing of it", "return x[:0]", SHAPE)
    forward("returns float8", "return x.to(torch.float8_e4m3fn)", Verdict.INCORRECT_DTYPE)
    forward("an async forward", "async def f():\n    return x\nreturn f()", SHAPE)


def _compilers() -> None:
    """C++ and Triton that do not build, or build and crash."""
    cpp = PLAIN + '\n\nfrom warpwright_native import load_cpp\n\nlib = load_cpp(r"""\n{}\n""")\n'
    call = cpp.replace("return right(x, self.weight)", "lib.f()\n        return right(x, self.weight)")
    add("C++ with an error", cpp.format("int f() { return nonsense; }"), BUILD)
    add("C++ without an end", cpp.format("int f() {"), BUILD)
    add("C++ with a missing header", cpp.format("#include <nowhere.h>"), BUILD)
    add("C++ that includes itself", cpp.format("#include __FILE__"), BUILD, PASSED)
    add("C++ that includes a device", cpp.format('#include "/dev/zero"'), BUILD, TIMEOUT, OOM, limit_s=2.0)
    add(
        "C++ with an endless template",
        cpp.format("template<int N> struct A { A<N + 1> a; }; A<0> a;"),
        BUILD,
        TIMEOUT,
        limit_s=8.0,
    )
    add("C++ that lacks a symbol", cpp.format('extern "C" void g(); extern "C" void f() { g(); }'), BUILD, RUNTIME)
    add("C++ that is not found", call.format("static int g;"), RUNTIME, BUILD)
    add("C++ that throws", call.format('extern "C" void f() { throw 5; }'), RUNTIME)
    add("C++ that crashes", call.format('extern "C" void f() { *(volatile int*)8 = 1; }'), RUNTIME)
    add("C++ that exits", call.format('#include <cstdlib>\nextern "C" void f() { std::exit(0); }'), RUNTIME)
    add(
        "C++ that crashes when loaded",
        call.format('struct A { A() { *(volatile int*)8 = 1; } } a;\nextern "C" void f() {}'),
        RUNTIME,
    )
    called = "k[(1,)](x, 8)\n        return right(x, self.weight)"
    model = PLAIN[PLAIN.index("def right") :].replace("return right(x, self.weight)", called)
    head = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(p, n: tl.constexpr):\n    {}\n\n\n"
    triton = head + model
    add("Triton that does not compile", triton.format("tl.store(p + tl.arange(0, n), undefined_name)"), RUNTIME, BUILD)
    add("Triton with no such operation", triton.format("tl.no_such_operation(p)"), RUNTIME, BUILD)
    add("Triton that writes far outside", triton.format("tl.store(p + (1 << 40), 1.0)"), RUNTIME)


for fill in (_text, _legal_but_hard, _no_model, _at_import, _constructor, _forward, _compilers):
    with part(fill.__name__):
        fill()
