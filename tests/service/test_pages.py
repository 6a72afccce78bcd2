"""Pages without a browser: what holds for their text."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.testclient import TestClient

from evaluator.types import Interval, Ratio
from service.pages import formatting
from service.pages.charts import interval_bar, staircase
from service.pages.static import ASSETS
from tests.db.world import World

TRANSITIONS = Path(__file__).parents[2] / "db" / "transitions"


def test_the_page_listens_to_every_kind_of_event() -> None:
    """An EventSource only hears the kinds that it names."""
    text = " ".join(path.read_text(encoding="utf-8") for path in TRANSITIONS.glob("*.py"))
    written = set(re.findall(r'emit\(\s*s,\s*[\w.]+,\s*"([a-z_.]+)"', text))
    assert "run.ended" in written
    heard = set(re.findall(r'"([a-z]+\.[a-z_]+)"', (ASSETS / "live.js").read_text(encoding="utf-8")))
    assert written <= heard


def test_pages_carry_nothing_inline(client: TestClient, finished: str, world: World) -> None:
    run = world.run(finished)
    for path in ("/", "/runs", f"/runs/{run.id}", f"/candidates/{run.champion_id}", f"/problems/{run.problem_id}"):
        response = client.get(path)
        assert response.status_code == 200
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert not re.search(r"<script(?![^>]*\bsrc=)|\bstyle=|\bon[a-z]+=|<style", response.text)
        assert len(response.content) < 100_000


def test_assets_are_kept_for_a_year_by_their_content(client: TestClient) -> None:
    address = re.search(r"/static/style\.css\?v=[0-9a-f]+", client.get("/").text)
    assert address is not None
    assert "immutable" in client.get(address[0]).headers["cache-control"]
    assert "immutable" not in client.get("/static/style.css").headers["cache-control"]


def test_errors_are_pages_for_people_and_documents_for_programs(client: TestClient) -> None:
    page = client.get("/runs/nothing", headers={"accept": "text/html"})
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert client.get("/runs/nothing").headers["content-type"] == "application/problem+json"
    assert client.get("/runs?cursor=forged", headers={"accept": "text/html"}).status_code == 400


def test_numbers_read_well() -> None:
    assert [formatting.times(value) for value in (1.0, 1.008, 2.314, 12.44)] == ["1.000×", "1.008×", "2.31×", "12.4×"]
    assert formatting.span(2.2, 2.4) == "2.20–2.40"
    assert [formatting.duration_us(v) for v in (0.5, 12.34, 1234.0, 2.5e6)] == [
        "0.50 µs",
        "12.3 µs",
        "1.23 ms",
        "2.50 s",
    ]
    assert [formatting.duration_s(v) for v in (0.44, 59.7, 61, 7300)] == [
        "0.4 s",
        "1 min 0 s",
        "1 min 1 s",
        "2 h 1 min",
    ]
    assert formatting.moment("2026-11-21T08:30:00Z") == "2026-11-21 08:30 UTC"


def test_drawings_stay_in_their_boxes() -> None:
    bar = interval_bar(Ratio(against="fastest", value=2.0, interval=Interval(low=0.5, high=9.0)), top=3.0)
    assert 0 <= bar.low <= bar.middle <= bar.high <= 100.8
    assert staircase([]) is None
    chart = staircase([(1, 0.5), (2, 3.0), (3, 1.0)])
    assert chart is not None
    assert chart.path.endswith(f"H{chart.width}")
    assert all(0 <= y <= chart.height for _, y in chart.points)
