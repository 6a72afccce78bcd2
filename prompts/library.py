"""The templates: loaded with StrictUndefined, named as `operator@version#hash`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from evaluator.types import content_hash
from prompts import units

FOLDER = Path(__file__).with_name("templates")


@cache
def environment() -> jinja2.Environment:
    """Jinja with undefined names refused; nothing is escaped, since a prompt is text and not a page."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )
    made.filters["us"] = units.time
    made.filters["size"] = units.size
    made.filters["rate"] = units.rate
    made.filters["operations"] = units.operations
    made.filters["settings"] = settings
    return made


def settings(configuration: Mapping[str, Any]) -> str:
    """A Configuration for a reader: "NT=1, UNROLL=4"."""
    return ", ".join(f"{name}={value}" for name, value in sorted(configuration.items()))


def fill(name: str, /, **values: Any) -> str:
    """Render one template of the folder. Raises jinja2.UndefinedError where a value is missing."""
    return environment().get_template(f"{name}.j2").render(**values).strip()


@cache
def identity(names: tuple[str, ...]) -> str:
    """`name@version#hash` of a set of templates: the first names it and carries the version; the hash covers all."""
    texts = [(FOLDER / f"{name}.j2").read_text(encoding="utf-8") for name in names]
    found = re.match(r"\{#-? version: (\d+)", texts[0])
    version = found.group(1) if found else "0"
    return f"{names[0]}@{version}#{content_hash(*names, *texts)[:12]}"
