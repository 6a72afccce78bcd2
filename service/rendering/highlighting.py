"""Source with classes for colours, not style attributes, which the content security policy drops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from pygments import highlight as pygments_highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String, Text

# Longer sources are shown plain: highlighting a megabyte takes more than a second.
MAX_CHARACTERS = 100_000
MAX_BLOCKS = 20
"""Further blocks of code in a prompt or a reply are shown plain."""
KEPT = 32
"""Recent highlighted sources; a source never changes."""
_FENCE = re.compile(r"^(```[^\n]*)$", re.MULTILINE)
_QUOTED = re.compile(r"([A-Za-z]*(?:\"\"\"|'''))(.*?)(\"\"\"|''')?", re.DOTALL)
_CPP = re.compile(r'extern "C"|__global__|^#include', re.MULTILINE)
# Pygments' own C++ takes half a minute for twenty thousand empty lines; this takes time in proportion.
_TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<macro>^\#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"?)|(?P<number>\b\d[\w.]*)
    |(?P<word>\b(?:alignas|auto|break|case|const|constexpr|continue|default|do|else|extern|for|if|inline|namespace|private
    |public|return|sizeof|static|struct|switch|template|typedef|typename|union|using|volatile|while
    |__\w+__|bool|char|double|float|half|int|long|short|size_t|unsigned|void|u?int\d+_t)\b)|(?P<name>\b[A-Za-z_]\w*(?=\())""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_KINDS = {
    "comment": Comment, "macro": Keyword.Namespace, "string": String, "number": Number, "word": Keyword,
    "name": Name.Function,
}  # fmt: skip


class KernelLexer(PythonLexer):  # type: ignore[misc]  # pygments has no types
    """Python whose strings of C++ or CUDA are read as such."""

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[tuple[int, Any, str]]:
        """Yield (place, kind, text) of each token."""
        held: list[tuple[int, Any, str]] = []
        for token in super().get_tokens_unprocessed(text, stack):
            if token[1] in String:
                held.append(token)
                continue
            yield from _inside(held)
            held = []
            yield token
        yield from _inside(held)


def _inside(tokens: list[tuple[int, Any, str]]) -> Iterator[tuple[int, Any, str]]:
    """Yield the tokens of a string; of one with C++ in triple quotes, C++'s."""
    text = "".join(token[2] for token in tokens)
    quoted = _QUOTED.fullmatch(text) if _CPP.search(text) else None
    if quoted is None:
        yield from tokens
        return
    start, done = tokens[0][0], quoted.start(2)
    yield start, String, quoted[1]
    for found in _TOKENS.finditer(text, done, quoted.end(2)):
        yield start + done, Text, text[done : found.start()]
        yield start + found.start(), _KINDS[str(found.lastgroup)], found[0]
        done = found.end()
    yield start + done, Text, text[done : quoted.end(2)]
    yield start + quoted.end(2), String, quoted[3] or ""


@lru_cache(maxsize=KEPT)
def highlight(source: str) -> Markup:
    """Return escaped HTML with line numbers in a column of their own, which a selection does not copy."""
    numbers = "\n".join(str(number + 1) for number in range(max(1, len(source.splitlines()))))
    gutter = Markup('<pre class="gutter" aria-hidden="true">{}</pre>').format(numbers)
    if len(source) > MAX_CHARACTERS:
        return Markup('<div class="lines">{}<pre class="code">{}</pre></div>').format(gutter, source)
    formatter: HtmlFormatter[str] = HtmlFormatter(cssclass="code", linenos=False, wrapcode=True)
    # Pygments escapes its input.
    body = Markup(pygments_highlight(source, KernelLexer(stripnl=False), formatter))
    return Markup('<div class="lines">{}{}</div>').format(gutter, body)


@lru_cache(maxsize=KEPT)
def highlight_chat(text: str) -> Markup:
    """Return a prompt or a reply as escaped HTML, its fenced blocks of code highlighted."""
    if len(text) > MAX_CHARACTERS:
        return Markup("{}").format(text)
    # Prose, a fence, code, the fence that ends it, prose again.
    parts = _FENCE.split(text, maxsplit=2 * MAX_BLOCKS)
    shown = [_code(part) if number % 4 == 2 else Markup("{}").format(part) for number, part in enumerate(parts)]
    return Markup("").join(shown)


def _code(text: str) -> Markup:
    lexer, formatter = KernelLexer(stripnl=False, ensurenl=False), HtmlFormatter[str](nowrap=True)
    shown = pygments_highlight(text, lexer, formatter)  # ends every line, the last one too
    return Markup(shown if text.endswith("\n") else shown.removesuffix("\n"))
