"""Reading a posted reference: statically, in this process; it is executed only in the judge's cage."""

from __future__ import annotations

import dataclasses

from evaluator.errors import ProblemError
from evaluator.problem import describe_problem, read_problem
from evaluator.types import Problem
from service.errors import Unprocessable
from service.schemas.requests import ProblemRequest


def read_request(request: ProblemRequest) -> tuple[Problem, str]:
    """The Problem that a request describes, and its description. Raises Unprocessable with the line."""
    try:
        problem = read_problem(request.source, request.name)
        description = request.description if request.description is not None else describe_problem(request.source)
    except ProblemError as error:
        raise Unprocessable(
            f"{error}.".replace("..", "."),
            slug="problem-refused",
            title="The reference cannot be read as a Problem",
            line=error.line,
        ) from error
    if request.domain is not None:
        problem = dataclasses.replace(problem, domain=request.domain)
    return problem, description[:10_000]
