"""The admission of a Problem: its reference runs in a cage, and null solutions must fail."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evaluator import recipe_sizes
from evaluator.child.protocol.layout import LayoutError, TensorSpec, UnjudgedTensorError, tensor_places
from evaluator.child.reference.float64 import widened
from evaluator.comparison.expected import FIXED_SHAPES, INACCURATE_REFERENCE, VARYING_SHAPES, Expected
from evaluator.comparison.layout_checks import check_no_reuse
from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit, rule_for
from evaluator.devices.rates import matmul_gflops
from evaluator.errors import ChildError, ChildFault, ChildTimeout, EvaluatorError, Rejection
from evaluator.inputs import values
from evaluator.inputs.sizes import sizes_to_check
from evaluator.oracle.dimensions import find_dimensions
from evaluator.oracle.oracle import Oracle
from evaluator.stages.judge import Judge
from evaluator.stages.stage_clock import StageClock
from evaluator.stages.time_candidate import copy_floor_us
from evaluator.stages.trial import secret_generator
from evaluator.subject import Arguments, Subject
from evaluator.types import Admission, Domain, Problem, Stage, Verdict, Workload, WorkloadFacts

_TRIES, _MOST_DRAWS = 2, 12
_NULL_FAILURES = 3  # of the draws
_OTHERS = "the answer to other inputs of the recipe's"
_NEAR = 10.0
_CALL_S, _COUNT_S = 30.0, 60.0
_LAYOUT_DRAWS, _LAYOUT_DRAWS_S = 24, 2.0
_ROOM = 200  # free device memory that compiling needs, in multiples of an input's bytes


class _Refused(EvaluatorError):
    """The Problem is refused; the text is the reason, with what to do."""

    def __init__(self, reason: str, **evidence: Any) -> None:
        super().__init__(reason)
        self.evidence = evidence


def admit(judge: Judge, problem: Problem) -> Admission:
    """Try the reference on every Workload of this device kind. Never raises for a fault of the reference."""
    clock = StageClock()
    facts: list[WorkloadFacts] = []
    verdict, reason, evidence = Verdict.PASSED, "", {}
    try:
        with clock.during(Stage.CORRECTNESS):
            evidence = judge.retry_on_shortage(lambda: _admit(judge, problem, facts))
        reason = f"the reference runs on {len(facts)} workloads, and no null solution passes"
    except _Refused as found:
        verdict, reason, evidence = Verdict.INVALID_REFERENCE, str(found), found.evidence
    except ChildFault as fault:
        verdict, reason = Verdict.INVALID_REFERENCE, _advice(fault)
        evidence = {"error": str(fault)[:2000], "output": fault.output[-2000:]}
        if isinstance(fault, ChildError):
            evidence["trace"] = fault.trace
    except UnjudgedTensorError as error:
        verdict, reason = Verdict.INVALID_REFERENCE, str(error)
    except LayoutError as error:
        verdict, reason = Verdict.INVALID_REFERENCE, f"the reference returns something that cannot be read: {error}"
    except EvaluatorError as error:
        verdict, reason = Verdict.INTERNAL_ERROR, f"{type(error).__name__}: {error}"[:1000]
    if verdict is not Verdict.PASSED:
        judge.session.forget(problem)
    return Admission(
        problem_hash=problem.hash,
        verdict=verdict,
        reason=reason,
        evidence=evidence,
        facts=tuple(facts) if verdict is Verdict.PASSED else (),
        device=judge.device,
        environment=judge.environment,
        isolation=judge.session.pools.isolation,
        duration_s=clock.duration_s,
    )


def _admit(judge: Judge, problem: Problem, facts: list[WorkloadFacts]) -> dict[str, Any]:
    workloads = problem.workloads_for(judge.backend.kind)
    if not workloads:
        kind = judge.backend.kind
        raise _Refused(f'no workload applies to {kind}: add one without "device", or with "device": "{kind}"')
    if all(w.held_out for w in workloads):
        raise _Refused("every workload is held out: at least one must be shown and timed")
    facts.clear()
    judge.check_stage.forget_cases()  # memory that a reference may need
    if judge.compiles_ahead:
        judge.session.comparators.hold()  # a first verdict comes next
    generator = secret_generator()
    evidence: dict[str, Any] = {"null_solutions": {}, "oracle": "float64", "uninformative": []}
    with judge.session.shared(), judge.session.references.start(problem) as reference:
        for workload in workloads:
            try:
                facts.append(_try_workload(judge, problem, workload, reference, generator, evidence))
            except torch.OutOfMemoryError:
                if not judge.session.references.trusts_memory_errors:
                    raise
                raise _Refused(
                    f"workload {workload.name} needs too much memory: the expected outputs are computed in float64,"
                    f" several times, and {judge.device.name} has too little for that. Make the workload smaller"
                ) from None
        _check_shown(problem, workloads, facts)
        dimensions = find_dimensions(problem, workloads, reference, generator)
        varied = [s for s in sizes_to_check(problem, workloads, dimensions) if not s.adversarial]
    evidence["domain"] = recipe_sizes.domain_in_words(problem, judge.backend.kind)
    evidence["sizes"] = {**recipe_sizes.default_sizes(problem.source), **dimensions}
    evidence["varied_sizes"] = [s.label for s in varied]
    return evidence


def _check_shown(problem: Problem, workloads: Sequence[Workload], facts: Sequence[WorkloadFacts]) -> None:
    """Refuse a `declared` domain with dtypes that only a held-out Workload has: no kernel can be written for these."""
    if problem.domain is not Domain.DECLARED:
        return
    hidden = {workload.name for workload in workloads if workload.held_out}
    shown = {_dtypes(fact) for fact in facts if fact.workload not in hidden}
    for fact in facts:
        if fact.workload in hidden and _dtypes(fact) not in shown:
            raise _Refused(
                f"held-out workload {fact.workload!r} has inputs of dtypes ({', '.join(_dtypes(fact))}) that no shown"
                ' workload has: give it their dtypes (or its own "device"), or show one like it'
            )


def _dtypes(fact: WorkloadFacts) -> tuple[str, ...]:
    return tuple(text.partition(" ")[0] for text in fact.inputs)


def _try_workload(
    judge: Judge,
    problem: Problem,
    workload: Workload,
    reference: Subject,
    generator: torch.Generator,
    evidence: dict[str, Any],
) -> WorkloadFacts:
    oracle = Oracle(problem, reference, workload.sizes, generator)
    made = [oracle.inputs() for _ in range(_TRIES)]
    if not made[0].tensors:
        raise _Refused(f"get_inputs() returns no tensor on workload {workload.name}: a kernel needs tensors to work on")
    _check_constructor(oracle, workload)
    _check_layouts(oracle, made, workload)
    if judge.compiles_ahead and not workload.held_out and _has_room(judge, made[0].tensors):
        judge.session.comparators.prepare(problem, workload, judge.session.comparators.modes(), oracle)
    expected = oracle.expect(made[0].tree, [m.tensors for m in made])
    if not oracle.in_float64:
        evidence["oracle"] = oracle.precision
    if not expected[0].targets:
        raise _Refused("forward returns no tensor: return what the kernel has to compute")
    _check_shapes(expected, workload)
    _check_inputs(oracle, made[0], workload)
    _check_separate_outputs(reference, made[0].tree, [m.tensors for m in made], workload)
    _check_repeatable(oracle, made[0].tree, made[0].tensors, expected[0], workload)
    made, expected = _comparable_draws(oracle, workload, made, expected)
    _check_nulls(oracle, workload, made, expected, evidence)
    return _facts(workload, oracle, made[0], expected[0])


def _comparable_draws(
    oracle: Oracle, workload: Workload, made: Sequence[Arguments], expected: Sequence[Expected]
) -> tuple[list[Arguments], list[Expected]]:
    """Return `_TRIES` draws on which every output can be compared, from these and further ones.

    A sum of terms of both signs is near zero on some draws, and has few right digits there. The reference is refused
    where most draws are like that.
    """
    pairs = [(one, right) for one, right in zip(made, expected, strict=True) if right.complete]
    for _ in range(_MOST_DRAWS - len(made)):
        if len(pairs) >= _TRIES:
            break
        one = oracle.inputs()
        (right,) = oracle.expect(one.tree, [one.tensors])
        pairs += [(one, right)] if right.complete else []
    if len(pairs) < _TRIES:
        raise _Refused(f"on workload {workload.name} {INACCURATE_REFERENCE}")
    return [one for one, _ in pairs], [right for _, right in pairs]


def _has_room(judge: Judge, inputs: Sequence[torch.Tensor]) -> bool:
    """Return whether the Baselines may compile beside admission without taking memory that it needs."""
    free = judge.backend.free_bytes()
    return free is None or free > _ROOM * sum(tensor.numel() * tensor.element_size() for tensor in inputs)


def _check_layouts(oracle: Oracle, made: Sequence[Arguments], workload: Workload) -> None:
    """Refuse a recipe whose tensors differ in number, shape, stride or dtype from one seed to another."""
    drawn = [[TensorSpec.of(tensor) for tensor in one.tensors] for one in made]
    first = drawn[0]
    for other in [*drawn[1:], *oracle.drawn_layouts(_LAYOUT_DRAWS, limit_s=_LAYOUT_DRAWS_S)]:
        pairs = enumerate(itertools.zip_longest(first, other))
        found = next(((place, one, two) for place, (one, two) in pairs if one != two), None)
        if found is not None:
            place, one, two = found
            raise _Refused(
                f"on workload {workload.name} get_inputs() draws other shapes each time: its tensor {place} is "
                f"{_spec_text(one)} under one seed and {_spec_text(two)} under another. Make every length an argument "
                'of get_inputs, a size of the workload ({"name": "short", "length": 512}), and draw values only: '
                "where several lengths are drawn, fix their sum"
            )


def _check_constructor(oracle: Oracle, workload: Workload) -> None:
    """Refuse constructor arguments, or shapes of them, that each seed draws: a kernel is verified for some alone."""
    for _ in range(_TRIES):
        one, other = oracle.init, oracle.drawn_constructor()
        specs = [[TensorSpec.of(tensor) for tensor in arguments.tensors] for arguments in (one, other)]
        if one.tree != other.tree or specs[0] != specs[1]:
            raise _Refused(
                f"on workload {workload.name} get_init_inputs() draws other arguments each time: return fixed numbers "
                "(or sizes of the workload), and draw only the values of tensors"
            )


def _spec_text(spec: TensorSpec | None) -> str:
    return "missing" if spec is None else f"{spec.dtype} {list(spec.shape)} with stride {list(spec.stride)}"


def _check_shapes(expected: Sequence[Expected], workload: Workload) -> None:
    """Refuse output shapes that depend on values: a kernel derives them from the shapes of its inputs."""
    first, second = (one.shapes for one in expected)
    if first != second:
        raise _Refused(f"on workload {workload.name} {VARYING_SHAPES} ({first} and {second}): {FIXED_SHAPES}")
    if expected[0].structure != expected[1].structure:
        raise _Refused(
            f"on workload {workload.name} forward returns, next to tensors, a value that depends on the inputs' values "
            f"({expected[0].structure[:100]} and {expected[1].structure[:100]}): return it as a tensor"
        )


def _check_inputs(oracle: Oracle, made: Arguments, workload: Workload) -> None:
    """Refuse a call that changes inputs which the Problem does not declare as changed."""
    changed = oracle.changed_inputs(made.tree, made.tensors)
    if changed:
        arguments = enumerate(next(iter(made.tree.values())))
        place = next(at for at, value in arguments if not set(changed).isdisjoint(tensor_places(value)))
        raise _Refused(
            f"on workload {workload.name} forward changes its input {place} in place (an in-place operation on the"
            f" input itself?): list it in MUTATES = [{place}] if kernels are to do so too, or work on a copy of it"
        )


def _check_separate_outputs(
    reference: Subject, tree: Any, calls: Sequence[Sequence[torch.Tensor]], workload: Workload
) -> None:
    """Refuse a call that overwrites the outputs of the one before."""
    reply = reference.run(tree, calls, slot="apart", timeout_s=_CALL_S)
    try:
        check_no_reuse(reply.replies)
    except Rejection:
        raise _Refused(
            f"on workload {workload.name} two calls return the same memory, for example a buffer of the module: "
            "return a copy of it (clone())"
        ) from None
    finally:
        reference.end_run(reply)
    reference.drop("apart")


def _check_repeatable(
    oracle: Oracle, tree: Any, tensors: Sequence[torch.Tensor], expected: Expected, workload: Workload
) -> None:
    """Repeat equal inputs twice, and with a module made anew: the outputs may differ by a few roundings only,
    regardless of the oracle."""
    if not all(_nearly_equal(expected, outputs) for _, outputs in oracle.repeat(tree, tensors)):
        raise _Refused(
            f"the reference returns different outputs for equal inputs on workload {workload.name}: remove "
            "randomness (dropout, random numbers) and state that calls keep outside of buffers"
        )
    if not all(_nearly_equal(expected, outputs) for _, outputs in oracle.repeat_anew(tree, tensors)):
        raise _Refused(
            f"on workload {workload.name} a Model made under another seed returns other outputs with the same "
            "parameters and buffers: its constructor draws random values and keeps them elsewhere. A kernel cannot have"
            ' them: register each as a buffer (self.register_buffer("order", torch.randperm(n)))'
        )


def _nearly_equal(expected: Expected, outputs: Sequence[torch.Tensor]) -> bool:
    for first, actual in zip(expected.targets, outputs, strict=True):
        before = Target(first.reference if first.integral else widened(first.reference), None)
        rule = rule_for(actual.dtype)
        near = Limit(_NEAR * rule.norm_floor, _NEAR * rule.element_floor)
        if first.reference.shape != actual.shape or before.compare(actual, near) is not None:
            return False
    return True


def _check_nulls(
    oracle: Oracle,
    workload: Workload,
    made: Sequence[Arguments],
    expected: Sequence[Expected],
    evidence: dict[str, Any],
) -> None:
    """Refuse a null solution that is right on nearly all draws. One draw does not tell: a flag may be set by chance."""
    tried: dict[str, int] = evidence["null_solutions"]
    passing = _passing_nulls(made[0].tensors, *expected)
    tried.update({name: tried.get(name, 0) + 1 for name, passes in passing.items() if not passes})
    failures = {name: 0 for name, passes in passing.items() if passes}
    for _ in range(_MOST_DRAWS - 1):
        if all(count >= _NULL_FAILURES for count in failures.values()):
            return
        one = oracle.inputs()
        (right,) = oracle.expect(one.tree, [one.tensors])
        again = _passing_nulls(one.tensors, right, expected[0])
        failures = {name: count + (not again.get(name, True)) for name, count in failures.items()}
    name = min(failures, key=lambda one: failures[one])
    if failures[name] < _NULL_FAILURES:
        deep = ". A deep network may need TRAIN = True" if name == _OTHERS else ""
        raise _Refused(
            f"a null solution passes on workload {workload.name}: {name}. The outputs carry too little of the inputs to"
            f" tell a right kernel from a wrong one: change the inputs (are they random?) or the outputs{deep}",
            null_solution=name,
            workload=workload.name,
        )


def _passing_nulls(tensors: Sequence[torch.Tensor], right: Expected, other: Expected) -> dict[str, bool]:
    """Return for each null solution whether it is right on these inputs."""
    return {
        name: all(
            target.compare(actual, limit) is None
            for target, limit, actual in zip(right.targets, right.limits, outputs, strict=True)
        )
        for name, outputs in null_solutions(right.targets, tensors, other.targets)
    }


def null_solutions(
    targets: Sequence[Target], inputs: Sequence[torch.Tensor], others: Sequence[Target]
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Yield outputs that need no work: zeros, ones, the mean of the right output, the right output for other inputs of
    the recipe (`others`), a copy of an input."""
    like = [target.reference for target in targets]
    yield "zeros", [torch.zeros_like(t) for t in like]
    yield "ones", [torch.ones_like(t) for t in like]
    if any(t.numel() > 1 for t in like):  # a single number is its own mean
        yield (
            "the mean everywhere",
            [_mean(t) if t.numel() > 1 else o.reference for t, o in zip(like, others, strict=True)],
        )
    yield _OTHERS, [other.reference for other in others]
    for index, tensor in enumerate(inputs):
        if all(tensor.shape == t.shape for t in like):
            yield f"a copy of input {index}", [tensor.to(t.dtype) for t in like]


def _mean(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() == 0:
        return tensor.clone()
    if tensor.dtype is torch.bool or not (tensor.is_floating_point() or tensor.is_complex()):
        return torch.full_like(tensor, values.workable(tensor).flatten().mode().values.item())
    return torch.full_like(tensor, values.workable(tensor).mean().item())


def _facts(workload: Workload, oracle: Oracle, made: Arguments, expected: Expected) -> WorkloadFacts:
    outputs = [target.reference for target in expected.targets]
    moved = values.bytes_of([*made.tensors, *outputs]) + oracle.state_bytes(made.tree, made.tensors)
    backend = oracle.subject.backend
    multiplied = (*made.tensors, *oracle.parameters.values())
    kind = next((t.dtype for t in multiplied if t.is_floating_point()), None)
    return WorkloadFacts(
        workload=workload.name,
        inputs=tuple(_describe(t) for t in made.tensors),
        outputs=tuple(_describe(t) for t in outputs),
        bytes_moved=moved,
        flops=oracle.subject.flops(made.tree, made.tensors, timeout_s=_COUNT_S),
        floor_us=copy_floor_us(backend, moved),
        matmul_gflops=None if kind is None else matmul_gflops(backend.torch_device, kind),
        constructor=oracle.init.tree,
        arguments=made.tree,
        weights=tuple(f"{name} {_describe(t)}" for name, t in (*oracle.parameters.items(), *oracle.buffers.items())),
    )


def _describe(tensor: torch.Tensor) -> str:
    dense = "" if tensor.is_contiguous() else f" stride {list(tensor.stride())}"
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}{dense}"


def _advice(fault: ChildFault) -> str:
    """Return the fault of the reference and a remedy."""
    if isinstance(fault, ChildTimeout):
        return f"the reference does not finish: {fault}. Make the workload smaller, or end the loop"
    if isinstance(fault, ChildError):
        if fault.kind == "InvalidModule":
            return fault.message[:500]
        if fault.oom:
            return f"the reference needs too much memory: {fault}. Make the workload smaller"
        return f"the reference raises {fault.kind}: {fault.message[:500]}. Run it once by hand and correct it"
    if getattr(fault, "oom", False):
        return "the reference needs too much memory. Make the workload smaller"
    return f"the reference's process {fault}. Run it once by hand and correct it"
