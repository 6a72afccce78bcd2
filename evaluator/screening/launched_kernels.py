"""The kernels that one call launches on a GPU, where the Problem forbids those of vendor libraries."""

from __future__ import annotations

import secrets

from evaluator.child.protocol.layout import LayoutError
from evaluator.errors import ChildError, ChildFault
from evaluator.rejections import rejection
from evaluator.screening import libraries
from evaluator.subject import Subject
from evaluator.types import Candidate, DeviceKind, LibraryPolicy, Problem, Stage

_PROFILE_S = 30.0


def library_kernels(problem: Problem, candidate: Candidate, subject: Subject, reference: Subject) -> list[str]:
    """Return the Candidate's kernels that belong to a library: claims. Its module is built for the last shown Workload.

    Empty where libraries are allowed, and where profiling does not work: no Candidate is refused for that. Raise
    Rejection.
    """
    if problem.allow_library is not LibraryPolicy.FORBIDDEN or subject.backend.kind is not DeviceKind.CUDA:
        return []
    last = [workload for workload in problem.workloads_for(DeviceKind.CUDA) if not workload.held_out][-1]
    arguments = reference.recipe("get_inputs", last.sizes, secrets.randbits(31))
    try:
        found = subject.profile(arguments.tree, arguments.tensors, calls=1, timeout_s=_PROFILE_S)
    except ChildError:
        return []
    except (ChildFault, LayoutError) as fault:
        raise rejection(fault, Stage.INTEGRITY, "profiling its kernels") from fault
    return libraries.library_kernels([str(one.get("name", "")) for one in found], candidate.source)
