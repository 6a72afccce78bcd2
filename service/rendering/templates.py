"""Templates and their globals. Everything is escaped; an undefined name in a template is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from evaluator.recipe_sizes import domain_in_words
from service.exports import KERNELS
from service.identity.principal import VIEWER, Principal
from service.rendering import formatting
from service.rendering.charts import lines
from service.rendering.static import asset

NAVIGATION = (("leaderboard", "/", "Leaderboard"), ("runs", "/runs", "Runs"), ("fleet", "/fleet", "Fleet"))

templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent.parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.filters.update(
    times=formatting.times,
    span=formatting.span,
    us=formatting.duration_us,
    seconds=formatting.duration_s,
    usd=formatting.usd,
    count=formatting.count,
    moment=formatting.moment,
    words=formatting.words,
    domain=domain_in_words,
)
templates.globals.update(
    asset=asset,
    plural=formatting.plural,
    interval_bar=lines.interval_bar,
    kernel_formats=KERNELS,
    sparkline=lines.sparkline,
    navigation=NAVIGATION,
    seconds=formatting.duration_s,
    usd=formatting.usd,
    whole=formatting.whole,
)


def viewer() -> Principal | None:
    """Return the page's reader: `project_id`, `scope`, and `csrf_token` for a browser session."""
    return VIEWER.get()


def csrf_token() -> str:
    """Return the token for a form's `csrf_token` and a script's X-CSRF-Token; empty where no session needs it."""
    who = VIEWER.get()
    return "" if who is None else who.csrf_token or ""


templates.globals.update(viewer=viewer, csrf_token=csrf_token)


def page(template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a page, or a fragment of one."""
    return HTMLResponse(templates.get_template(template).render(**values), status_code=status)
