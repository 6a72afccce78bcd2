"""Static files: the vendored ones are those that the README lists, and come packed. Colours of code."""

from __future__ import annotations

import hashlib
import html
import re
import time

import pytest
from markupsafe import Markup
from starlette.testclient import TestClient

from service.rendering.highlighting import highlight, highlight_chat
from service.rendering.static import ASSETS

VENDOR = ASSETS / "vendor"


def test_vendored_files_are_those_of_the_readme() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|.*`([0-9a-f]{64})`", (VENDOR / "README.md").read_text(), re.MULTILINE)
    named = dict(rows)
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.suffix in (".js", ".css", ".woff2")
    }
    assert named == found
    assert all((VENDOR / f"{name}.LICENSE").is_file() for name in ("htmx", "uplot", "d3-hierarchy", "geist"))


def test_scripts_come_packed_to_those_who_take_it(client: TestClient) -> None:
    plain = client.get("/static/vendor/htmx.min.js", headers={"accept-encoding": "identity"})
    packed = client.get("/static/vendor/htmx.min.js", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert packed.content == plain.content
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    again = client.get("/static/vendor/htmx.min.js", headers={"if-none-match": packed.headers["etag"]})
    assert again.status_code == 304


def _shown(markup: Markup) -> str:
    """Return the text that a reader of the page sees and copies."""
    return html.unescape(re.sub(r"<[^>]+>", "", str(markup).rpartition('</pre><div class="code">')[2]))


def test_cpp_inside_of_a_kernel_is_coloured_and_the_text_stays() -> None:
    source = 'import torch\n\nCODE = r"""\n#include <x>\n__global__ void f(float* x) {  // <b>\n}\n"""\nx = """a"""\n'
    shown = highlight(source)
    assert '<span class="k">__global__</span>' in shown
    assert '<span class="nf">f</span>' in shown
    assert "<b>" not in shown
    assert _shown(shown).strip() == source.strip()
    unfinished = 'x = r"""extern "C" /* <i>\n'
    assert _shown(highlight(unfinished)).strip() == unfinished.strip()


def test_code_in_a_reply_is_coloured_and_the_text_stays() -> None:
    reply = 'Plan: <b>fuse</b>.\n\n```python\nimport torch\n```\nDone.\n```\nopen("'
    shown = highlight_chat(reply)
    assert '<span class="kn">import</span>' in shown
    assert "<b>" not in shown
    assert _shown(shown) == reply


@pytest.mark.parametrize("repeated", ["\n", "a (", '"', "/*", "```\n", "#include ", "a::b "])
def test_colouring_takes_time_in_proportion(repeated: str) -> None:
    """Pygments' own C++ takes half a minute for this."""
    began = time.process_time()
    text = repeated * (60_000 // len(repeated))
    highlight(f'x = r"""extern "C" {text}"""')
    highlight_chat(f"```\n{text}")
    assert time.process_time() - began < 10
