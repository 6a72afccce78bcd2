"""The prompt templates, loaded with StrictUndefined and identified as `operator@version#hash`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from evaluator.languages import adapter
from evaluator.types import Language, content_hash
from prompts import units

FOLDER = Path(__file__).with_name("templates")
_GUIDE = "guide_"


@cache
def environment() -> jinja2.Environment:
    """Return the Jinja environment. It refuses undefined names, and escapes nothing, since a prompt is no HTML."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda file: _text(file.removesuffix(".j2"))),
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
    """Return a Configuration as text: "NT=1, UNROLL=4"."""
    return ", ".join(f"{name}={value}" for name, value in sorted(configuration.items()))


def guide(language: Language) -> str:
    """Return the name of the template that shows how to write a language."""
    return f"{_GUIDE}{adapter(language).guide.parent.name}"


def _text(name: str) -> str:
    """Return a template's text: of this room, or a guide from its language's folder."""
    path = adapter(Language(name.removeprefix(_GUIDE))).guide if name.startswith(_GUIDE) else FOLDER / f"{name}.j2"
    return path.read_text(encoding="utf-8")


def fill(name: str, /, **values: Any) -> str:
    """Render one template of the folder. Raises jinja2.UndefinedError if a value is missing."""
    return environment().get_template(f"{name}.j2").render(**values).strip()


@cache
def identity(names: tuple[str, ...]) -> str:
    """Return `name@version#hash` of templates: name and version are the first one's, and the hash covers all."""
    texts = [_text(name) for name in names]
    found = re.match(r"\{#-? version: (\d+)", texts[0])
    version = found.group(1) if found else "0"
    return f"{names[0]}@{version}#{content_hash(*names, *texts)[:12]}"
