"""More files that are no Candidates: what they do to their process, their compiler, and to whoever reads their answers.

`EVERY` is these and those of `malformed_files`.
"""

from __future__ import annotations

from evaluator.types import Verdict
from tests.adversarial.malformed_files import (
    BUILD,
    FILES,
    INVALID,
    OOM,
    PASSED,
    PLAIN,
    RUNTIME,
    SHAPE,
    TIMEOUT,
    VALUES,
    add,
    at_import,
    constructor,
    forward,
    part,
)

_CPP = PLAIN + '\n\nfrom warpwright_native import load_cpp\n\nlib = load_cpp(r"""\n{}\n""")\n'
_TRITON = (
    PLAIN
    + "\n\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(p):\n    {}\n\n\nk[({},)](torch.ones(1))\n"
)


def _compiler() -> None:
    """C++ that is hard on its compiler, or on what loads it."""
    macros = "#define A0 x x x x x x x x x x\n" + "".join(
        f"#define A{i} " + f"A{i - 1} " * 10 + "\n" for i in range(1, 12)
    )
    add("C++ that includes secrets", _CPP.format('#include "/etc/shadow"'), BUILD)
    add("C++ with the environment inside", _CPP.format('asm(".incbin \\"/proc/self/environ\\"");'), BUILD, PASSED)
    add("C++ with thousands of warnings", _CPP.format("#warning x\n" * 50_000), PASSED, BUILD)
    add("C++ with a huge error", _CPP.format("#error " + "x" * 300_000), BUILD)
    add("C++ with escapes in its error", _CPP.format("#error \x1b[2J\x07 \u202e end"), BUILD)
    add("C++ whose macros multiply", _CPP.format(macros + "A11"), BUILD, TIMEOUT, OOM, limit_s=4.0)
    add(
        "C++ with eight gigabytes of data",
        _CPP.format('asm(".data\\n.fill 0x200000000, 1, 1");'),
        BUILD,
        TIMEOUT,
        limit_s=6.0,
    )
    add(
        "C++ that forks when loaded",
        _CPP.format("#include <unistd.h>\nstruct A { A() { if (fork() == 0) for (;;) pause(); } } a;"),
        PASSED,
    )
    add(
        "C++ that hangs when unloaded",
        _CPP.format("#include <unistd.h>\nstruct A { ~A() { for (;;) pause(); } } a;"),
        PASSED,
    )
    add("C++ with surrogates", _CPP.format("a").replace('r"""\na\n"""', '"\\ud800"'), RUNTIME, BUILD, INVALID)
    add("Triton without end", _TRITON.format("while True:\n        tl.store(p, 1.0)", 1), TIMEOUT, limit_s=2.0)
    add("Triton with a grid of billions", _TRITON.format("tl.store(p, 1.0)", 2**31 - 1), TIMEOUT, limit_s=2.0)


def _process() -> None:
    """Modules that change the process that they are loaded in."""
    at_import("clears its environment", "os.environ.clear()", PASSED)
    at_import("clears sys.path", "sys.path.clear()", PASSED, RUNTIME)
    at_import("default device meta", "torch.set_default_device('meta')", RUNTIME, INVALID, SHAPE, VALUES)
    at_import("inference mode for ever", "torch.inference_mode().__enter__()", PASSED, RUNTIME)
    at_import(
        "a pool that is never closed",
        "import multiprocessing\np = multiprocessing.get_context('fork').Pool(3)",
        PASSED,
        RUNTIME,
    )
    at_import(
        "an address limit that is too small",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))",
        RUNTIME,
        OOM,
    )
    at_import(
        "no more descriptors", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))", RUNTIME, PASSED
    )
    at_import(
        "opens all descriptors",
        "kept = []\ntry:\n    while True:\n        kept.append(open('/dev/null'))\nexcept OSError:\n    pass",
        RUNTIME,
        PASSED,
        TIMEOUT,
    )
    at_import(
        "a folder a thousand deep", "for i in range(1000):\n    os.mkdir('d')\n    os.chdir('d')", PASSED, RUNTIME
    )
    at_import("waits for a named pipe", "os.mkfifo('/tmp/f')\nopen('/tmp/f').read()", TIMEOUT, limit_s=1.0)
    at_import(
        "shuts the channel's writing side",
        "import socket\nsocket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_WR)",
        RUNTIME,
    )
    at_import("a name like a state", "open('/proc/self/comm', 'w').write('a) R 1 (')", PASSED)
    at_import(
        "patched builtins",
        "import builtins\nvars(builtins).update(len=lambda x: 0, isinstance=lambda *a: True)",
        RUNTIME,
        VALUES,
        SHAPE,
        INVALID,
    )
    at_import(
        "a metaclass whose call hangs",
        "class Meta(type):\n    def __call__(cls, *a):\n        time.sleep(3600)\nclass ModelNew(torch.nn.Module, metaclass=Meta):\n    pass",
        TIMEOUT,
        limit_s=1.0,
    )


def _answers() -> None:
    """Classes whose state or answers are odd."""
    weight = "super().__init__()\n        self.weight = torch.nn.Parameter({})\n        return"
    constructor("one element for a parameter", weight.format("torch.ones(1).expand(hidden)"), RUNTIME, INVALID, VALUES)
    constructor("a sparse parameter", weight.format("torch.ones(hidden).to_sparse()"), RUNTIME, INVALID, VALUES)
    constructor(
        "a complex parameter",
        weight.format("torch.ones(hidden, dtype=torch.complex64)"),
        RUNTIME,
        INVALID,
        Verdict.INCORRECT_DTYPE,
    )
    constructor(
        "names that are no text",
        "super().__init__()\n        self._parameters[5] = torch.nn.Parameter(torch.ones(hidden))\n        self.weight = torch.nn.Parameter(torch.ones(hidden))\n        return",
        RUNTIME,
        INVALID,
    )
    constructor(
        "a module that holds itself",
        "super().__init__()\n        self.weight = torch.nn.Parameter(torch.ones(hidden))\n        self._modules['self'] = self\n        return",
        RUNTIME,
        INVALID,
        PASSED,
    )
    forward(
        "returns rows far apart",
        "y = right(x, self.weight).numpy()\nreturn torch.from_numpy(__import__('numpy').lib.stride_tricks.as_strided(y, y.shape, (1 << 36, 4)))",
        SHAPE,
        RUNTIME,
    )
    forward("returns a dict subclass", "return type('D', (dict,), {})(y=right(x, self.weight))", SHAPE)
    forward("returns fifty megabytes of text", "return 'x' * 50_000_000", SHAPE)
    forward("returns a number of many digits", "return 10 ** 100_000", SHAPE)
    forward("returns what holds itself", "d = {}\nd['a'] = d\nreturn d", RUNTIME, SHAPE)
    forward(
        "raises with a cause that is itself", "e = ValueError('x')\ne.__cause__ = e.__context__ = e\nraise e", RUNTIME
    )
    forward(
        "raises while it is torn down",
        "class E:\n    def __del__(self):\n        raise ValueError('x' * 10**5)\nself.e = E()\nreturn right(x, self.weight)",
        PASSED,
    )
    forward(
        "hangs when it is torn down",
        "class E:\n    def __del__(self):\n        time.sleep(3600)\ny = right(x, self.weight)\nself.__dict__['e'] = E()\nreturn y",
        TIMEOUT,
        limit_s=1.5,
    )
    forward(
        "deletes its parameter", "y = right(x, self.weight)\ndel self._parameters['weight']\nreturn y", RUNTIME, INVALID
    )
    forward("resizes its input", "y = right(x, self.weight)\nx.resize_(0)\nreturn y", RUNTIME, VALUES)
    forward(
        "stops its group", "os.killpg(0, signal.SIGSTOP)\nreturn right(x, self.weight)", TIMEOUT, RUNTIME, limit_s=1.5
    )
    forward("keeps the interpreter to itself", "ctypes.PyDLL(None).sleep(3600)", TIMEOUT, limit_s=1.5)


for fill in (_compiler, _process, _answers):
    with part(fill.__name__):
        fill()

EVERY = tuple(FILES)
