"""Random and boundary requests to every operation of the API, each answer held to the document by every check.

Half of the ids are real ones, so that what lies behind them is reached too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation, BaseSchema

MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@dataclass
class Fuzzer:
    """Asks `schema`'s application as the owner of `headers`.

    `known` maps the noun before an id in a path (`runs`) and a field that holds one (`problem_id`) to a real id;
    `meant` maps fields of a body to values that mean something, since no schema says what a kernel is.
    """

    schema: BaseSchema
    headers: Mapping[str, str]
    known: Mapping[str, str]
    meant: Mapping[str, object]
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def cases(self) -> int:
        """Return the number of requests sent."""
        return self.statuses.total()

    def operations(self) -> Sequence[APIOperation]:
        """Every operation of the document."""
        return [result.ok() for result in self.schema.get_all_operations()]

    def ask(self, case: Case, *, real: bool) -> None:
        """Send one request and check its answer."""
        if real:
            self._put_ids(case)
        if case.meta is not None and case.meta.generation.mode.is_positive:
            self._put_what_no_schema_says(case)
        response = case.call_and_validate(headers=dict(self.headers))
        self.statuses[response.status_code] += 1

    def boundaries(self, operation: APIOperation, count: int) -> None:
        """Values at the edges of the schemas, missing and unknown parts, wrong types and methods: `count` of them."""
        made = self.schema.iter_coverage_cases(
            operation, generation_modes=MODES, generation_config=self.schema.config.generation
        )
        cases = [case for case in made if _honest(case)]
        for number, case in enumerate(_spread(cases, count)):
            self.ask(case, real=number % 2 == 0)

    def random(self, operation: APIOperation, count: int) -> None:
        """`count` random requests, about half of them ones that the document allows. The same ones in every run."""

        @hypothesis_settings(
            max_examples=count,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(
            case=st.one_of([operation.as_strategy(generation_mode=mode) for mode in MODES]),
            real=st.booleans(),
        )
        def ask(case: Case, real: bool) -> None:
            self.ask(case, real=real)

        ask()

    def _put_ids(self, case: Case) -> None:
        for noun, part in itertools.pairwise(case.operation.path.split("/")):
            name = part.strip("{}")
            if part.startswith("{") and noun in self.known and name in case.path_parameters:
                case.path_parameters[name] = self.known[noun]
        for container in (case.query, *_objects(case.body)):
            for name, value in list(container.items()):
                if isinstance(value, str) and name in self.known:
                    container[name] = self.known[name]

    def _put_what_no_schema_says(self, case: Case) -> None:
        """A cursor is one that was given out, a key belongs to one request, a source is a kernel, a name is known."""
        case.query.pop("cursor", None)
        case.headers.pop("Last-Event-ID", None)
        if "Idempotency-Key" in case.headers:
            case.headers["Idempotency-Key"] = f"key-{self.cases}"
        for holder in _objects(case.body):
            for name, value in list(holder.items()):
                if value and name in self.meant:
                    holder[name] = self.meant[name]


def _honest(case: Case) -> bool:
    """Return True for a case that is valid: without a valid body one header may be made valid alone."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return True
    return all(part.mode.is_positive for part in case.meta.components.values())


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in list(value.values()):
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def _spread(cases: Sequence[Case], count: int) -> Sequence[Case]:
    """`count` of the cases, spread evenly over all of them."""
    if len(cases) <= count:
        return cases
    return [cases[number * len(cases) // count] for number in range(count)]
