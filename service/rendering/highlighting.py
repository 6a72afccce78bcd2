"""Source with classes for colours, not style attributes, which the content security policy drops."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup
from pygments import highlight as pygments_highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

# Longer sources are shown plain: highlighting a megabyte takes more than a second.
MAX_CHARACTERS = 100_000
KEPT = 32
"""Recent highlighted sources; a source never changes."""


@lru_cache(maxsize=KEPT)
def highlight(source: str) -> Markup:
    """Return escaped HTML with line numbers in a column of their own, which a selection does not copy."""
    numbers = "\n".join(str(number + 1) for number in range(max(1, len(source.splitlines()))))
    gutter = Markup('<pre class="gutter" aria-hidden="true">{}</pre>').format(numbers)
    if len(source) > MAX_CHARACTERS:
        return Markup('<div class="lines">{}<pre class="code">{}</pre></div>').format(gutter, source)
    formatter: HtmlFormatter[str] = HtmlFormatter(cssclass="code", linenos=False, wrapcode=True)
    # Pygments escapes its input.
    body = Markup(pygments_highlight(source, PythonLexer(stripnl=False), formatter))
    return Markup('<div class="lines">{}{}</div>').format(gutter, body)
