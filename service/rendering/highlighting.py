"""Source with classes for colours; never a style attribute, which the content security policy would drop."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup
from pygments import highlight as pygments_highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

# Beyond this a source is shown plain: highlighting a megabyte takes more than a second.
MAX_CHARACTERS = 100_000
KEPT = 32
"""Sources never change; those looked at lately are kept as they were coloured."""


@lru_cache(maxsize=KEPT)
def highlight(source: str) -> Markup:
    """Escaped HTML with line numbers beside it, which are not copied along."""
    numbers = "\n".join(str(number + 1) for number in range(max(1, len(source.splitlines()))))
    gutter = Markup('<pre class="gutter" aria-hidden="true">{}</pre>').format(numbers)
    if len(source) > MAX_CHARACTERS:
        return Markup('<div class="lines">{}<pre class="code">{}</pre></div>').format(gutter, source)
    formatter: HtmlFormatter[str] = HtmlFormatter(cssclass="code", linenos=False, wrapcode=True)
    # Pygments escapes what it is given.
    body = Markup(pygments_highlight(source, PythonLexer(stripnl=False), formatter))
    return Markup('<div class="lines">{}{}</div>').format(gutter, body)
