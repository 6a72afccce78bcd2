"""Static files: the vendored ones are those that the README lists, and come packed."""

from __future__ import annotations

import hashlib
import re

from starlette.testclient import TestClient

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
