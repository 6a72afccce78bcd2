"""Join several kernels in one file. Each call goes to the kernel that was fastest on the nearest measured sizes, by
dtypes and shapes of its inputs, or to the reference.

The kernels keep their text. Their top-level names get a prefix each. Their `forward`s become methods of one ModelNew
with the reference's constructor, so parameters exist once and a call costs one look-up more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from evaluator.types import LibraryPolicy, Problem, WorkloadFacts
from synthesis.dispatch.renaming import Prefixed, Statement, code, is_text, names_used, prefixed
from synthesis.dispatch.table import choice, input_count, table
from synthesis.errors import Unsupported
from synthesis.reference import closure, normal_form

REFERENCE = -1
"""The number of the reference, where Workloads are given the numbers of kernels."""
_BASES = ("nn.Module", "torch.nn.Module", "_warpwright_torch.nn.Module")
_IMPORTS = {"math": "math", "torch": "torch", "nn": "torch.nn"}


@dataclass(frozen=True, slots=True)
class _Part:
    """A kernel or the reference: its class without `forward`, and the other statements of its module."""

    title: str
    prefix: str
    forward: cst.FunctionDef
    members: Mapping[str, Statement]
    rest: tuple[Statement, ...]
    module: Prefixed


def write_dispatch(
    problem: Problem, facts: Sequence[WorkloadFacts], kernels: Sequence[str], choices: Mapping[str, int]
) -> str:
    """Write a Candidate that answers each Workload with the kernel of its number in `choices`.

    `kernels` are sources of Candidates; `facts` give the inputs of the Workloads (those without a choice are left out).
    REFERENCE is a choice, too, and answers inputs that differ from all Workloads in dtypes or ranks. Where the Problem
    forbids library calls it is left out, and the kernel of most Workloads answers.

    Raise Unsupported where kernels cannot be joined (see `dispatch.renaming`). Their constructors must begin like the
    reference's.
    """
    if not set(range(len(kernels))) <= set(choices.values()) <= {REFERENCE, *range(len(kernels))}:
        raise Unsupported("every kernel is chosen for some workload, and nothing else is")
    whole = problem.allow_library is LibraryPolicy.ALLOWED
    if REFERENCE in choices.values() and not whole:
        raise Unsupported("the problem forbids library calls, and the reference may make some")
    reference = _part(problem.source, "Model", "_reference_", "The reference", whole=whole)
    parts = [_part(source, "ModelNew", f"_k{n}_", f"Kernel {n}") for n, source in enumerate(kernels)]
    members = {name: member for name, member in reference.members.items() if not _is_bare(name, member)}
    parts = [_join(part, source, problem.source, members) for part, source in zip(parts, kernels, strict=True)]
    rows = [fact for fact in facts if fact.workload in choices]
    arguments = _arguments(reference.forward, rows)
    methods = [(n, f"_kernel_{n}") for n in range(len(parts))] + [(REFERENCE, "_reference")] * whole
    forwards = [_method(part.forward, name) for part, (_, name) in zip([*parts, reference], methods, strict=False)]
    chooses = cst.parse_statement(choice(arguments, methods))
    assert isinstance(chooses, cst.FunctionDef)
    body = [*members.values(), _method(chooses, "forward"), *forwards]
    otherwise = REFERENCE if whole else max(choices.values(), key=[*choices.values()].count)
    pieces = [
        _head([*parts, reference]),
        *(_section(part) for part in (*parts, reference) if part.rest),
        table(rows, choices, otherwise=otherwise, nested=not arguments),
        cst.Module(body=[_class(body)]).code,
    ]
    return "\n\n\n".join(piece.strip("\n") for piece in pieces) + "\n"


def _part(source: str, model: str, prefix: str, title: str, *, whole: bool = True) -> _Part:
    """Take a source apart. Of a reference keep what its class needs, without what only `forward` needs
    unless `whole`."""
    module = prefixed(source, prefix, keep=(model,))
    found = [s for s in module.statements if isinstance(s, cst.ClassDef) and s.name.value == model]
    if len(found) != 1 or [code(base.value) for base in found[0].bases] not in ([base] for base in _BASES):
        raise Unsupported(f"{title.lower()} has no plain class {model}(nn.Module)")
    owner = found[0]
    if model != "ModelNew":  # the reference becomes a part of ModelNew
        owner = owner.with_changes(body=owner.body.visit(_ClassRenamer(model)))
    if owner.decorators or not isinstance(owner.body, cst.IndentedBlock):
        raise Unsupported(f"{title.lower()}'s class {model} is of another form")
    members: dict[str, Statement] = {}
    for statement in owner.body.body:
        name = _member_name(statement)
        if name is None or name in members:
            raise Unsupported(f"{title.lower()}'s class {model} is more than methods and constants")
        if name:
            members[name] = statement
    forward = members.pop("forward", None)
    if not isinstance(forward, cst.FunctionDef):
        raise Unsupported(f"{title.lower()} has no forward")
    rest = [s for s in module.statements if s is not found[0]]
    if model != "ModelNew":
        known = {f"{prefix}{name}" for name in closure(source, model, without=() if whole else ("forward",))}
        rest = [s for s in rest if _binds(s) & known]
    kept = [s for s in rest if not _is_setting(s, prefix)]
    return _Part(title, prefix, forward, members, tuple(kept), module)


def _member_name(statement: cst.CSTNode) -> str | None:
    """Return the name that a statement of a class's body defines: "" for a docstring or `pass`, None for
    anything else."""
    match statement:
        case cst.FunctionDef(name=cst.Name(value=name)):
            return name
        case cst.SimpleStatementLine(body=[cst.Expr() | cst.Pass()]):
            return ""
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
            return name
        case cst.SimpleStatementLine(body=[cst.AnnAssign(target=cst.Name(value=name))]):
            return name
        case _:
            return None


def _is_bare(name: str, member: cst.CSTNode) -> bool:
    """Return whether a member is a constructor that only calls its base's."""
    match member:
        case cst.FunctionDef(body=cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[cst.Expr(value=call)])])):
            return name == "__init__" and code(call) in ("super().__init__()", "super(Model, self).__init__()")
        case _:
            return False


def _is_setting(statement: Statement, prefix: str) -> bool:
    """Return whether a statement is TUNABLES: it has no use here, since the values in force are those that
    were judged."""
    return _member_name(statement) == f"{prefix}TUNABLES"


def _binds(statement: Statement) -> set[str]:
    """Return the names that a top-level statement may define."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return {statement.name.value}
    return names_used(statement)


def _join(part: _Part, source: str, reference_source: str, members: dict[str, Statement]) -> _Part:
    """Add the members of a kernel's class that the reference's lacks to `members`: methods, and the end of its
    constructor.

    These members and the attributes that they set get the kernel's prefix. Raise Unsupported where the kernel has a
    member of the reference's in another form.
    """
    own = {name for name, member in part.members.items() if name not in members and not _is_bare(name, member)}
    end: list[Statement] = []
    for name, member in part.members.items():
        if name in own or _is_bare(name, member):
            continue
        ours, theirs = normal_form(source, "ModelNew", name), normal_form(reference_source, "Model", name)
        if ours == theirs:
            continue
        start = len(theirs[1])
        if name != "__init__" or (ours[0], ours[1][:start]) != (theirs[0], theirs[1]) or not {*theirs[2]} <= {*ours[2]}:
            raise Unsupported(f"{part.title.lower()} has a {name} of its own")
        end = _statements(member)[start:]
    if any(name.startswith("__") for name in own):
        raise Unsupported(f"{part.title.lower()} has {', '.join(sorted(own))} of its own")
    renamer = _AttributeRenamer(own | {name for statement in end for name in _attributes_set(statement)}, part.prefix)
    for name in part.members:
        if name in own:
            members[part.prefix + name] = _visited(part.members[name], renamer)
    if end:
        constructor = members["__init__"]
        assert isinstance(constructor, cst.FunctionDef)
        both = [*_statements(constructor), *(_visited(statement, renamer) for statement in end)]
        members["__init__"] = constructor.with_changes(body=cst.IndentedBlock(body=both))
    forward = part.forward.visit(renamer)
    assert isinstance(forward, cst.FunctionDef)
    return replace(part, forward=forward)


def _visited(statement: Statement, renamer: cst.CSTTransformer) -> Statement:
    changed = statement.visit(renamer)
    assert isinstance(changed, cst.BaseStatement)
    return changed


def _statements(method: cst.CSTNode) -> list[Statement]:
    """Return the statements of a method, without its docstring."""
    if not isinstance(method, cst.FunctionDef) or not isinstance(method.body, cst.IndentedBlock):
        return []
    found: list[Statement] = list(method.body.body)
    return found[1:] if found and is_text(found[0]) else found


def _attributes_set(statement: Statement) -> set[str]:
    """Return the names x of every `self.x = ...` in a statement."""
    found: set[str] = set()

    class Targets(cst.CSTVisitor):
        def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
            match node.target:
                case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
                    found.add(name)

    statement.visit(Targets())
    return found


class _ClassRenamer(cst.CSTTransformer):
    """Rename a class to ModelNew within its own body."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value="ModelNew") if original_node.value == self._name else updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        plain = code(original_node) == f"super({self._name}, self)"
        return updated_node.with_changes(args=()) if plain else updated_node


class _AttributeRenamer(cst.CSTTransformer):
    """Prefix some of the attributes of `self`."""

    def __init__(self, names: set[str], prefix: str) -> None:
        super().__init__()
        self._names, self._prefix = names, prefix

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        match original_node:
            case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)) if name in self._names:
                return updated_node.with_changes(attr=cst.Name(self._prefix + name))
            case _:
                return updated_node

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if original_node.name.value in self._names:
            return updated_node.with_changes(name=cst.Name(self._prefix + original_node.name.value))
        return updated_node


def _arguments(forward: cst.FunctionDef, facts: Sequence[WorkloadFacts]) -> list[str]:
    """Return the names of the inputs where a call has one tensor for each, else none."""
    given = forward.params
    names = [p.name.value for p in given.params[1:]]
    more = any(p.default is not None for p in given.params) or bool(
        given.kwonly_params or given.posonly_params or given.star_kwarg
    )
    listed = isinstance(given.star_arg, cst.MaybeSentinel)
    taken = {"self", "layout", "kernel"} & set(names)
    return names if listed and not more and not taken and input_count(facts) == len(names) else []


def _method(forward: cst.FunctionDef, name: str) -> cst.FunctionDef:
    return forward.with_changes(name=cst.Name(name), leading_lines=[cst.EmptyLine(indent=False)])


def _class(body: Sequence[cst.BaseStatement]) -> cst.ClassDef:
    base = cst.Arg(cst.parse_expression("nn.Module"))
    return cst.ClassDef(name=cst.Name("ModelNew"), bases=[base], body=cst.IndentedBlock(body=body))


def _head(parts: Sequence[_Part]) -> str:
    """Return the comment on top and the imports of all parts."""
    known = dict(_IMPORTS)
    for part in parts:
        for name, target in part.module.imports.items():
            if known.setdefault(name, target) != target:
                raise Unsupported(f"{part.title.lower()} imports {target} as {name}, which is {known[name]} elsewhere")
    said = f"# {len(parts) - 1} kernels. Each call goes to what was the fastest on the nearest sizes."
    futures = dict.fromkeys(line for part in parts for line in part.module.futures)
    lines = ["import math", "import torch", "from torch import nn"]
    lines += [line for part in parts for line in part.module.import_lines]
    return "\n".join([said, *futures, *dict.fromkeys(lines)])


def _section(part: _Part) -> str:
    return f"# {part.title}.\n\n" + "".join(code(statement) for statement in part.rest).strip("\n")
