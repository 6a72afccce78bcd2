"""Children of Candidates: started with the files that earlier ones compiled, and constructed like the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.device_session import DeviceSession
from evaluator.errors import ChildFault, Rejection
from evaluator.languages import adapter
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import match_names
from evaluator.rejections import rejection
from evaluator.sandbox.build_cache import BuildCache, collect_built_files
from evaluator.stages.stage_clock import load_limit_s
from evaluator.subject import Subject
from evaluator.types import Candidate, Problem, Stage


@dataclass(frozen=True, slots=True)
class LoadedState:
    """The reference's parameters and buffers under a Candidate's names for them."""

    parameters: Mapping[str, torch.Tensor]
    buffers: Mapping[str, torch.Tensor]


class CandidateChildren:
    """Starts children of Candidates and keeps the files that they compile."""

    def __init__(self, session: DeviceSession, built: BuildCache) -> None:
        self.session, self.built = session, built

    def start(self, candidate: Candidate, stage: Stage) -> Subject:
        """Start a child with the Candidate loaded, given the files that earlier ones compiled. Raises Rejection."""
        pool = self.session.pools.for_candidate(adapter(candidate.language))
        known = self.built.get(candidate) is not None
        files, load_s = self.files(candidate), load_limit_s(candidate)
        try:
            subject = self.session.children.start(pool, candidate.source, "candidate", files=files, load_s=load_s)
        except ChildFault as fault:
            raise rejection(fault, stage, "loading the module") from fault
        if not known:
            try:
                self.store(candidate, subject, stage)
            except Rejection:
                subject.close()
                raise
        return subject

    def files(self, candidate: Candidate) -> Mapping[str, bytes]:
        """Return the compiled files for a Candidate's child, by their paths in its job folder."""
        return {**self.session.pools.runtime_files(candidate.language), **(self.built.get(candidate) or {})}

    def store(self, candidate: Candidate, subject: Subject, stage: Stage) -> None:
        """Keep the compiled files of a Candidate's child for its later children."""
        try:
            self.built.put(candidate, collect_built_files(subject.child))
        except ChildFault as fault:
            raise rejection(fault, stage, "loading the module") from fault


def construct(subject: Subject, oracle: Oracle, problem: Problem, stage: Stage) -> LoadedState:
    """Construct ModelNew with the oracle's parameters and buffers, and return what was loaded."""
    try:
        names = subject.construct("ModelNew", oracle.init, train=problem.train, seed=7)
        matched = match_names(oracle.names, names)
        subject.load_state(oracle.state_for(matched))
    except (ChildFault, LayoutError) as fault:
        raise rejection(fault, stage, "constructing ModelNew") from fault
    parameters, buffers = (
        {matched[name]: value for name, value in some.items() if name in matched}
        for some in (oracle.parameters, oracle.buffers)
    )
    return LoadedState(parameters, buffers)


def compiled_kernels(subject: Subject, stage: Stage) -> list[dict[str, Any]]:
    """Return registers, shared memory and spills of a Candidate's kernels: claims, for reports."""
    try:
        return subject.kernels()
    except (ChildFault, LayoutError) as fault:
        raise rejection(fault, stage, "asked for its kernels") from fault
