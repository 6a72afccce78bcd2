"""Posted references: read statically in this process, executed only in the judge's cage."""

from __future__ import annotations

import dataclasses

from sqlalchemy.orm import Session

from db.repositories import problems
from db.transitions.problems import create_problem
from db.views.rows import ProblemView
from evaluator.errors import ProblemError
from evaluator.problem import describe_problem, read_problem
from evaluator.recipe_sizes import with_workloads
from evaluator.types import DeviceKind, Problem
from service.errors import Unprocessable
from service.http.answering import checked_id
from service.schemas.requests import ProblemRequest


def read_request(request: ProblemRequest) -> tuple[Problem, str]:
    """Return the Problem that a request describes, and its description. Raise Unprocessable with the line."""
    try:
        problem = with_workloads(read_problem(request.source, request.name), request.sizes)
        description = request.description if request.description is not None else describe_problem(request.source)
    except ProblemError as error:
        raise Unprocessable(
            f"{error}.".replace("..", "."),
            slug="problem-refused",
            title="The reference cannot be read as a Problem",
            line=error.line,
        ) from error
    except ValueError as error:
        raise Unprocessable(f"{error}.", slug="problem-refused", title="A size cannot be set") from error
    if request.domain is not None:
        problem = dataclasses.replace(problem, domain=request.domain)
    return problem, description[:10_000]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChosenProblem:
    """The Problem of a request: given with it and already read, or stored, by its id."""

    id: str | None
    given: tuple[Problem, str] | None
    device: DeviceKind

    @classmethod
    def read(cls, id: str | None, given: ProblemRequest | None, device: DeviceKind) -> ChosenProblem:
        """Raise Unprocessable, NotFound."""
        return cls(
            id=checked_id(id, "problem") if id is not None else None,
            given=read_request(given) if given is not None else None,
            device=device,
        )

    def find(self, session: Session, project_id: str) -> ProblemView:
        """Store or find it. Raise db.errors.NotFound; Unprocessable without a Workload for the device."""
        if self.given is not None:
            view = create_problem(session, project_id, self.given[0], description=self.given[1])
        else:
            view = problems.get(session, self.id or "", project_id=project_id)
        if not any(not workload.held_out for workload in view.problem.workloads_for(self.device)):
            raise Unprocessable(
                f"The Problem has no Workload for {self.device.value}: add one to its WORKLOADS, "
                "or choose another device.",
                slug="no-workload",
                title="Nothing to do on this device",
            )
        return view
