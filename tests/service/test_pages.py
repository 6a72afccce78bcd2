"""Pages without a browser: what holds for their text."""

from __future__ import annotations

import csv
import html
import io
import re
from pathlib import Path

from sqlalchemy import Engine, update
from starlette.testclient import TestClient

from db.engine import write_session
from db.queues import JobKind
from db.tables.core import ChampionRow
from db.transitions.runs import pause_run
from db.views.rows import Milestone
from db.views.work import ProposalResult, ProposeWork
from evaluator.problem import read_problem
from evaluator.types import Interval, Ratio
from evolution.types import Run
from service.http.paging import encode_cursor
from service.pages import candidates as candidate_pages
from service.pages import runs as run_pages
from service.rendering import formatting
from service.rendering.charts.lines import interval_bar, sparkline, staircase
from service.rendering.diffs import diff
from service.rendering.static import ASSETS
from tests.db.world import EXHAUSTED, World, candidate_result
from tests.service.conftest import PROBLEM

TRANSITIONS = Path(__file__).parents[2] / "db" / "transitions"


def test_the_page_listens_to_every_kind_of_event() -> None:
    """An EventSource only hears the kinds that it names."""
    text = " ".join(path.read_text(encoding="utf-8") for path in TRANSITIONS.rglob("*.py"))
    written = set(re.findall(r'emit\(\s*s,\s*[\w.]+,\s*"([a-z_.]+)"', text))
    assert "run.ended" in written
    heard = set(re.findall(r'"([a-z]+\.[a-z_]+)"', (ASSETS / "kinds.js").read_text(encoding="utf-8")))
    assert written == heard


def every_page(run: Run) -> list[str]:
    """The address of every page of a finished Run, tabs included."""
    candidate = f"/candidates/{run.champion_id}"
    return [
        "/",
        "/?view=map",
        "/?view=families",
        "/?sort=roofline&q=soft",
        "/runs",
        "/fleet",
        "/docs",
        "/docs?part=runs",
        "/docs?part=access",
        "/submit",
        f"/submit?problem={run.problem_id}",
        f"/compare?id={run.champion_id}",
        f"/problems/{run.problem_id}",
        *(f"/runs/{run.id}{'/' if tab else ''}{tab}" for tab, _ in run_pages.TABS),
        *(f"{candidate}{'/' if tab else ''}{tab}" for tab, _ in candidate_pages.TABS),
    ]


def test_pages_carry_nothing_inline(client: TestClient, finished: str, world: World) -> None:
    run = world.run(finished)
    for path in every_page(run):
        response = client.get(path)
        assert response.status_code == 200, path
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|<style", response.text), path
        assert len(response.content) < 60_000, path


def test_a_first_view_stays_under_200_kb(client: TestClient, finished: str, world: World) -> None:
    """The page with everything that it names, as it goes over the wire to a browser."""
    for path in every_page(world.run(finished)):
        text = client.get(path).text
        assets = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', text)) | {"/static/vendor/geist-mono.woff2"}
        modules = {f"/static/{name}" for name in ("times.js", "kinds.js", "stream-worker.js")}
        total = len(text.encode())
        for address in assets | modules:
            with client.stream("GET", address, headers={"accept-encoding": "gzip"}) as response:
                assert response.status_code == 200, address
                total += sum(len(chunk) for chunk in response.iter_raw())
        assert total < 200_000, (path, total)


def test_a_number_that_was_not_confirmed_never_looks_confirmed(client: TestClient, finished: str, world: World) -> None:
    run = world.run(finished)
    table = client.get(f"/runs/{run.id}/candidates").text
    rows = {row[0]: row for row in (part.split('"', 1) for part in table.split('<tr id="row-')[1:])}
    for id, (_, row) in rows.items():
        assert ('class="speed"' in row) == (id == run.champion_id), id
    assert "2.40×" in rows[str(run.champion_id)][1]
    assert table.count('class="speed provisional"') == 2
    overview = client.get(f"/runs/{run.id}").text
    assert '<p class="figure">2.40×</p>' in overview
    assert ">confirmed</p>" in overview
    runner_up = next(
        item["id"]
        for item in client.get(f"/api/v1/runs/{run.id}/candidates?order=fastest").json()["items"]
        if item["id"] != run.champion_id
    )
    page = client.get(f"/candidates/{runner_up}").text
    assert '<p class="figure provisional">~1.60×</p>' in page
    assert ">not confirmed</p>" in page


def test_a_speedup_over_eager_stands_once_where_eager_is_the_fastest(
    client: TestClient, finished: str, world: World
) -> None:
    path = f"/candidates/{world.run(finished).champion_id}"
    assert "4.80× (4.70–4.90) against eager</p>" in client.get(path).text
    assert "4.80× vs eager" in client.get("/").text
    with write_session(world.engine) as s:
        s.execute(update(ChampionRow).values(fastest_baseline="eager", against_eager=ChampionRow.against_fastest))
    page = client.get(path).text
    assert "against eager, the fastest baseline" in page
    assert "against eager</p>" not in page
    assert "× vs eager" not in client.get("/").text


def test_the_numbers_of_cpu_threads_are_told(client: TestClient, finished: str, world: World) -> None:
    run = world.run(finished)
    page = client.get(f"/candidates/{run.champion_id}").text
    told = "<dt>CPU threads</dt><dd>1; with 4 3.00x (2.90 to 3.10) the fastest baseline; with 8 INCORRECT_VALUES</dd>"
    assert told in page
    assert "torch 2.13, 1 CPU thread</span>" in client.get(f"/problems/{run.problem_id}").text
    text = client.get(f"/api/v1/runs/{run.id}/download").text
    assert "with 1 or 4 CPU threads" in text
    assert "threads=[1, 4]" in text
    assert "with 4 CPU threads 3.000 x against the fastest baseline, judged once" in text


def test_what_a_stranger_wrote_is_text(client: TestClient, engine: Engine) -> None:
    """Markup in a name, a source, a reason and a reply is shown, never run."""
    evil = "<img src=x onerror=alert(1)>"
    hostile = read_problem(PROBLEM.replace("Softmax", evil), evil)

    def propose(work: ProposeWork) -> ProposalResult:
        if work.arm_number:
            return EXHAUSTED
        return candidate_result(f"SPEED = 'speed=2.0 '  # {evil}", prompt=evil, reply=evil, detail=evil, model=evil)

    world = World(engine, propose=propose, problem=hostile)
    run = world.start()
    world.drain()
    for path in every_page(world.run(run.id)):
        text = client.get(path).text
        assert "<img src=x" not in text, path
    assert "&lt;img src=x" in client.get(f"/problems/{run.problem_id}").text


def test_the_leaderboard_is_filtered_sorted_and_taken_home(client: TestClient, finished: str) -> None:
    assert "softmax" in client.get("/?q=SOFT+max").text
    assert "No match" in client.get("/?q=%25").text
    assert "No match" in client.get("/?language=cuda").text
    assert "Test CPU" in client.get("/?device=Test+CPU&view=map").text
    assert client.get("/?sort=upside-down", headers={"accept": "text/html"}).status_code == 422
    rows = list(csv.DictReader(io.StringIO(client.get("/leaderboard.csv?sort=newest").text)))
    assert [(row["problem"], row["speedup"], row["baseline"]) for row in rows] == [("softmax", "2.4", "compile")]


def test_lists_of_runs_and_candidates_are_asked_and_gone_through(client: TestClient, finished: str) -> None:
    assert "softmax" in client.get("/runs?q=soft&status=finished").text
    assert "No match" in client.get("/runs?status=live").text
    table = client.get(f"/runs/{finished}/candidates?verdict=BUILD_ERROR").text
    assert table.count('<tr id="row-') == 1
    assert client.get(f"/runs/{finished}/candidates?verdict=&order=fastest").text.count('<tr id="row-') == 3
    assert "No candidate has this verdict." in client.get(f"/runs/{finished}/candidates?verdict=TIMEOUT").text
    assert client.get(f"/runs/{finished}/candidates?verdict=FINE").status_code == 422
    forged = encode_cursor("runs::", "x")
    assert client.get(f"/runs/{finished}/candidates?cursor={forged}").status_code == 400


def test_a_run_is_paused_resumed_and_cancelled_from_its_page(client: TestClient, world: World) -> None:
    run = world.start()
    world.take(JobKind.JUDGE)
    for act, status in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert f'action="/runs/{run.id}/{act}"' in client.get(f"/runs/{run.id}").text
        answer = client.post(f"/runs/{run.id}/{act}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run.id}")
        assert world.run(run.id).status == status
    audited = [line["action"] for line in client.get("/api/v1/audit").json()["items"][:3]]
    assert audited == ["cancel_run", "resume_run", "pause_run"]
    assert "<form method" not in client.get(f"/runs/{run.id}").text
    assert client.post(f"/runs/{run.id}/explode").status_code == 422
    foreign = {"origin": "https://elsewhere.example"}
    assert client.post(f"/runs/{run.id}/cancel", headers=foreign).status_code == 403


def test_the_reason_of_a_pause_is_shown(client: TestClient, engine: Engine, world: World) -> None:
    run = world.start()
    with write_session(engine) as s:
        pause_run(s, run.id, why="The project's quota is used up.")
    assert "Paused: The project&#39;s quota is used up. Work in flight" in client.get(f"/runs/{run.id}").text


def test_a_diff_shows_what_changed_and_folds_the_rest() -> None:
    old = "\n".join(f"line {i}" for i in range(100))
    found = diff(old, old.replace("line 50", "line fifty"))
    assert found is not None
    assert (found.added, found.removed) == (1, 1)
    assert [line.text for line in found.lines if line.kind in ("cut", "add")] == ["line 50", "line fifty"]
    assert [line.text for line in found.lines if line.kind == "skipped"] == ["46 unchanged lines", "45 unchanged lines"]
    assert diff("x\n" * 5000, "y") is None


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
    wrong = client.get("/runs?status=lost", headers={"accept": "text/html"})
    assert (wrong.status_code, "<code>status</code>: Input should be" in wrong.text) == (422, True)


def test_numbers_read_well() -> None:
    assert [formatting.times(value) for value in (1.0, 1.008, 2.314, 12.44)] == ["1.000×", "1.008×", "2.31×", "12.4×"]
    assert formatting.span(2.2, 2.4) == "2.20–2.40"
    assert [formatting.duration_us(v) for v in (0.5, 12.34, 1234.0, 2.5e6)] == [
        "0.50 µs",
        "12.3 µs",
        "1.23 ms",
        "2.50 s",
    ]
    assert [formatting.duration_s(v) for v in (0.44, 59.7, 61, 7300, 7200)] == [
        "0.4 s",
        "1 min",
        "1 min 1 s",
        "2 h 1 min",
        "2 h",
    ]
    assert formatting.moment("2026-11-21T08:30:00Z") == "2026-11-21 08:30 UTC"


def test_drawings_stay_in_their_boxes() -> None:
    bar = interval_bar(Ratio(against="fastest", value=2.0, interval=Interval(low=0.5, high=9.0)), top=3.0)
    assert 0 <= bar.low <= bar.middle <= bar.high <= 100.8
    assert staircase([], "evaluations", 3.0) is None
    assert sparkline([1.0]) == ""
    assert sparkline([1.0, 2.0, 2.0]) == "M2.0 18.0 L40.0 2.0 L78.0 2.0"
    chart = staircase([milestone(1, 0.5), milestone(2, 3.0), milestone(2, 2.8, confirmed=True)], "evaluations", 4.0)
    assert chart is not None
    assert chart.path == "M160.0 198.27 H320.0 V24.96 H640"
    assert chart.champions == ((320.0, 38.82),)
    numbers = [float(n) for n in re.findall(r"[\d.]+", chart.area)]
    assert all(0 <= n <= chart.width for n in numbers)


def milestone(evaluations: int, value: float, *, confirmed: bool = False) -> Milestone:
    interval = Interval(low=value / 4, high=value * 4)
    return Milestone(
        candidate_id="cand_00000001",
        number=evaluations,
        speedup=Ratio(against="fastest", value=value, interval=interval),
        confirmed=confirmed,
        evaluations=evaluations,
        device_s=0.0,
        wall_s=0.0,
        usd=0.0,
        at="",
    )


def test_the_api_pages_have_every_operation_with_a_form_and_a_line_for_curl(client: TestClient) -> None:
    listed = client.get("/docs").text
    document = client.get("/api/v1/openapi.json").json()
    shown = "".join(client.get(f"/docs?part={tag['name']}").text for tag in document["tags"])
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f'#{operation["operationId"]}"' in listed
            assert f'id="{operation["operationId"]}"' in shown
            assert f'data-method="{method.upper()}" data-path="{path}"' in shown
    line = "curl -X POST 'http://127.0.0.1:8000/api/v1/runs' -H 'Content-Type: application/json' -d @body.json"
    assert line in html.unescape(shown)
    assert "$WARPWRIGHT_API_KEY" not in shown, "nobody needs a key here"
    assert '<a href="/docs">API</a>' in listed
    assert client.get("/docs?part=nothing").status_code == 404
