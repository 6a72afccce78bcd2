"""Check a Candidate's text alone, in milliseconds: refusals, libraries, a signature.

Source text proves nothing about behaviour; the cage, the oracle and the judge's clock do that. This stage saves their
time, gives the clearest messages, and refuses attempts at tampering that leave no doubt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluator.errors import ProblemError, Rejection
from evaluator.languages import ADAPTERS, adapter
from evaluator.problem import decode_source
from evaluator.syntax import TOO_DEEP, parse
from evaluator.types import Candidate, LibraryPolicy, Problem, Stage, Verdict, content_hash

STAGE = Stage.SCREEN
_LIBRARY_CALLS = frozenset(
    (
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "addmv",
        "baddbmm",
        "linear",
        "einsum",
        "conv1d",
        "conv2d",
        "conv3d",
        "scaled_dot_product_attention",
        "softmax",
        "log_softmax",
        "layer_norm",
        "rms_norm",
        "group_norm",
        "batch_norm",
        "cross_entropy",
        "sort",
        "topk",
        "cumsum",
    )
)
_CPP_LIBRARY = re.compile(r"\b(?:at|torch)::(\w+)\s*\(|\b(cublas\w+|cudnn\w+|cblas_\w+|mkldnn\w*|dnnl_\w+)\b")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_SIGNATURES = (".argtypes", ".restype", ".errcheck")  # of ctypes' functions
# Settings of Python and of the languages that are meant to be changed.
_SETTABLE = (
    "os.environ",
    "sys.argv",
    "sys.dont_write_bytecode",
    "sys.path",
    "sys.stderr",
    "sys.stdout",
    "sys.tracebacklimit",
    "logging.raiseExceptions",
    "sys.excepthook",
    "threading.excepthook",
    "warnings.formatwarning",
    "warnings.showwarning",
    "decimal.DefaultContext",
    *(prefix for language in ADAPTERS.values() for prefix in language.allowed.settable),
)


@dataclass(frozen=True, slots=True)
class Screened:
    """`signature` hashes the source without comments, docstrings and layout; `libraries` are the library
    calls in it."""

    signature: str
    libraries: tuple[str, ...]


def screen(problem: Problem, candidate: Candidate) -> Screened:
    """Raise Rejection for a text that cannot be a Candidate."""
    try:
        text = decode_source(candidate.source)
    except ProblemError as error:
        raise _invalid(str(error), error.line) from error
    tree = _parse(text)
    _check_model(tree)
    _check_tampering(tree)
    objection = adapter(candidate.language).objection(tree)
    if objection is not None:
        raise _invalid(objection.reason, objection.line)
    libraries = tuple(sorted(set(_libraries(tree))))
    if libraries and problem.allow_library is LibraryPolicy.FORBIDDEN:
        named = ", ".join(libraries)
        raise Rejection(
            Verdict.POLICY_VIOLATION, STAGE, f"the problem forbids library calls; found {named}", check="library",
            libraries=list(libraries),
        )  # fmt: skip
    return Screened(signature(tree), libraries)


def signature(tree: ast.Module) -> str:
    """Return a hash that is equal for sources that differ only in comments, docstrings and layout, also of embedded
    C++."""
    parts: list[str] = []
    pending: list[object] = [tree]
    while pending:  # not recursive: a legal sum of a thousand terms is as deep a tree
        item = pending.pop()
        if isinstance(item, ast.AST):
            parts.append(type(item).__name__)
            pending += [
                value for name, value in reversed(list(ast.iter_fields(_normal(item)))) if name != "type_comment"
            ]
        elif isinstance(item, list):
            parts.append(f"[{len(item)}")
            pending += reversed(item)
        else:  # hex, because decimal digits of a huge number are refused
            parts.append(hex(item) if type(item) is int else f"{type(item).__name__} {item!r}")
    return content_hash("signature", *parts)


def _invalid(reason: str, line: int | None = None) -> Rejection:
    return Rejection(Verdict.INVALID_SUBMISSION, STAGE, reason, check="source", line=line)


def _parse(text: str) -> ast.Module:
    if not text.strip():
        raise _invalid("the file is empty")
    try:
        tree = parse(text)
    except SyntaxError as error:
        fenced = next((i for i, line in enumerate(text.splitlines(), 1) if line.startswith("```")), None)
        if fenced is not None:
            raise _invalid("Markdown fences are in the file: send the code alone", fenced) from error
        source = (error.text or "").strip()[:200]
        raise _invalid(f"line {error.lineno}: does not parse: {error.msg}: {source}", error.lineno) from error
    except (RecursionError, MemoryError) as error:
        raise _invalid(f"does not parse: {TOO_DEEP}") from error
    if not tree.body:
        raise _invalid("the file holds only comments")
    return tree


def _check_model(tree: ast.Module) -> None:
    if any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in ast.walk(tree)):
        return
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    imported = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    if "ModelNew" in names or "ModelNew" in imported:
        return
    raise _invalid("there is no class ModelNew(nn.Module)")


def _check_tampering(tree: ast.Module) -> None:
    """Raise Rejection for an assignment into an imported module, which affects the whole process."""
    modules = _imported_modules(tree)
    own = _own_names(tree)

    def belongs_to_a_library(name: str) -> bool:
        """Return whether a name can only refer to a library; settings and signatures may be changed."""
        root, _, rest = name.partition(".")
        full = f"{modules.get(root)}.{rest}"
        settable = full.startswith(_SETTABLE) or full.endswith(_SIGNATURES)
        return root in modules and root not in own and not settable

    for node in ast.walk(tree):
        for target in _targets(node):
            name = _dotted(target)
            if name and belongs_to_a_library(name):
                raise _tampering(name, target.lineno)
        if isinstance(node, ast.Call) and _dotted(node.func) == "setattr" and node.args:
            name = _dotted(node.args[0])
            if name and belongs_to_a_library(f"{name}.{_text(node.args[1:2])}"):
                raise _tampering(name, node.lineno)


def _text(arguments: Sequence[ast.expr]) -> str:
    return str(arguments[0].value) if arguments and isinstance(arguments[0], ast.Constant) else ""


def _tampering(name: str, line: int) -> Rejection:
    reason = f"line {line}: replaces {name}, which belongs to a library: a Candidate may change only its own module"
    return Rejection(Verdict.REWARD_HACK, STAGE, reason, check="tampering", line=line, name=name)


def _targets(node: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that a statement assigns to (`a.b.c = ...`)."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        places = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        places = [node.target]
    for place in places:
        parts = place.elts if isinstance(place, ast.Tuple | ast.List) else [place]
        yield from (part for part in parts if isinstance(part, ast.Attribute))


def _imported_modules(tree: ast.Module) -> Mapping[str, str]:
    """Return names that imports bind, with their targets."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: f"{node.module or ''}.{alias.name}" for alias in node.names})
    return names


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _own_names(tree: ast.Module) -> set[str]:
    """Return names that the file itself defines, imports aside."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    found |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return found | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def _libraries(tree: ast.Module) -> Iterator[str]:
    own = _own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LIBRARY_CALLS:
            root = _dotted(node.func).split(".")[0]
            if root in ("torch", "F", "nn", "functional", "aten", "ops", "np", "numpy") and root not in own:
                yield _dotted(node.func)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and "__matmul__" not in own:
            yield "torch.matmul (@)"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and ";" in node.value:
            code = _COMMENT.sub(" ", node.value)  # C++ has statements; a note with a function's name has none
            yield from (found.group(0).rstrip("( \t\n") for found in _CPP_LIBRARY.finditer(code))


def _normal(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return ast.Pass()  # a docstring, or a string that does nothing
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
        return ast.Constant(" ".join(_COMMENT.sub(" ", node.value).split()))
    return node
