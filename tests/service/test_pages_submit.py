"""The form of a new Run, extending, comparing, and the fleet: without a browser."""

from __future__ import annotations

import html
import re

from sqlalchemy import Engine
from starlette.testclient import TestClient

from db.engine import read_session, write_session
from db.repositories import problems, runs
from db.repositories.work import fleet
from db.transitions.work.devices import register
from db.transitions.work.workers import record_heartbeat
from evaluator.problem import read_problem
from evaluator.types import DeviceKind
from service.pages.forms import RunForm, with_workloads
from service.pages.submit import estimate_of
from tests.db.world import DEVICE, ENVIRONMENT, World
from tests.service.conftest import PROBLEM

FORM = {"name": "mine", "source": PROBLEM, "device": "cpu", "candidates": "5", "minutes": "1.5"}


def test_a_run_is_started_with_the_form(client: TestClient, engine: Engine, nudges: list[str]) -> None:
    answer = client.post("/submit", data={**FORM, "target": "1.5", "proposers": "synthesiser"}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    with read_session(engine) as s:
        run = runs.get(s, answer.headers["location"].removeprefix("/runs/"))
    assert (run.budget.candidates, run.budget.wall_s, run.budget.usd) == (5, 90.0, None)
    assert (run.config.target_speedup, run.config.proposers) == (1.5, ("synthesiser",))
    assert nudges
    assert client.get("/api/v1/audit").json()["items"][0]["action"] == "create_run"


def test_a_mistake_brings_the_form_back_as_it_was(client: TestClient) -> None:
    for wrong, words in (
        ({"source": "def get_inputs(): return []\n"}, "there is neither"),
        ({"source": "x = (\n"}, "does not parse"),
        ({"candidates": "", "minutes": ""}, "set at least one limit"),
        ({"candidates": "many"}, "'many' is not a number"),
        ({"device": "toaster"}, "Device"),
        ({"device": "cuda"}, "no Workload for cuda"),
        ({"proposers": "oracle"}, "There is no Proposer named"),
        ({"name": ""}, "Name"),
        ({"name": "x" * 201}, "Name: String should have at most 200 characters"),
        ({"sizes": "x" * 5001}, "More workloads: a size is written NAME=VALUE"),
        ({"candidates": "9" * 201}, "Candidates"),
        ({"sizes": "rows=64\nrows"}, "More workloads: a size is written NAME=VALUE"),
        ({"sizes": "rows=1e999"}, "More workloads: rows must be a finite number"),
        ({"sizes": "height=64"}, "'height' is no size of this file"),
    ):
        answer = client.post("/submit", data={**FORM, **wrong}, follow_redirects=False)
        assert answer.status_code == 422, wrong
        text = html.unescape(answer.text)
        assert words in text, wrong
        assert "Softmax over rows" in text or "source" in wrong


def test_the_reference_is_looked_at_while_it_is_typed(client: TestClient, finished: str) -> None:
    good = html.unescape(client.post("/submit/check", data=FORM).text)
    assert ">valid<" in good
    assert "Softmax over rows." in good
    assert re.search(r'name="chosen" value="hidden" checked', good)
    assert "From 1 run that ended here on cpu" in good
    bad = client.post("/submit/check", data={**FORM, "source": "class Model:\n  pass\n  x x\n"}).text
    assert "cannot be read, line 3" in bad
    evil = client.post("/submit/check", data={**FORM, "source": '"""<script>alert(1)</script>"""\n' + PROBLEM}).text
    assert "<script>" not in evil
    unticked = client.post("/submit/check", data={**FORM, "shown": ["small", "hidden"], "chosen": ["small"]}).text
    assert re.search(r'name="chosen" value="hidden" *>', unticked)
    assert (
        "No estimate: no run on cuda has ended here yet"
        in client.post("/submit/check", data={**FORM, "device": "cuda"}).text
    )


def test_sizes_add_workloads(client: TestClient, engine: Engine) -> None:
    data = {**FORM, "sizes": "rows=64\n\nrows = 7\n"}
    looked = html.unescape(client.post("/submit/check", data=data).text)
    assert re.search(r'name="chosen" value="rows=7" checked', looked)
    assert "Domain declared: these shapes and other values of rows" in looked
    for some in ({}, {"shown": ["rows=64", "hidden"], "chosen": ["rows=64"]}):
        answer = client.post("/submit", data={**data, **some}, follow_redirects=False)
        with read_session(engine) as s:
            run = runs.get(s, answer.headers["location"].removeprefix("/runs/"))
            stored = problems.get(s, run.problem_id).problem
        assert [one.name for one in stored.workloads] == [
            "small",
            *(["hidden"] if not some else []),
            "rows=64",
            "rows=7",
        ]


def test_nothing_that_is_looked_at_is_run_or_stored(client: TestClient, engine: Engine) -> None:
    source = PROBLEM + "\nraise SystemExit('executed')\n"
    assert ">valid<" in client.post("/submit/check", data={**FORM, "source": source}).text
    with read_session(engine) as s:
        assert problems.list(s, "default") == ()


def test_workloads_that_were_unticked_are_left_out_of_the_problem(client: TestClient, engine: Engine) -> None:
    data = {**FORM, "shown": ["small", "hidden"], "chosen": ["small"]}
    answer = client.post("/submit", data=data, follow_redirects=False)
    with read_session(engine) as s:
        run = runs.get(s, answer.headers["location"].removeprefix("/runs/"))
        stored = problems.get(s, run.problem_id).problem
    assert [one.name for one in stored.workloads] == ["small"]
    whole = read_problem(PROBLEM, "p")
    assert with_workloads(PROBLEM, whole, RunForm(shown=("small",), chosen=("small",))) == PROBLEM
    none = client.post("/submit", data={**FORM, "shown": ["small", "hidden"], "chosen": ["hidden"]})
    assert "Choose at least one workload" in none.text


def test_an_estimate_says_what_ends_the_run(engine: Engine) -> None:
    from db.views.rows import Expectation

    known = Expectation(runs=3, device_s=(4, 5, 8), wall_s=(5, 10, 20), usd=(0.0, 0.1, 0.2), confirm_s=50.0)
    by_time = estimate_of(RunForm(candidates="40", minutes="2.5", device="cpu"), known)
    assert by_time.bound == "time"
    assert by_time.candidates == (5.0, 10.0, 20.0)
    assert by_time.wall_s[2] <= 150.0
    by_count = estimate_of(RunForm(candidates="4", minutes="60", device="cpu"), known)
    assert (by_count.bound, by_count.candidates) == ("candidates", (4.0, 4.0, 4.0))
    assert by_count.device_s == (66.0, 70.0, 82.0)


def test_a_run_that_ended_is_extended_from_its_page(client: TestClient, world: World, finished: str) -> None:
    before = world.run(finished).budget.candidates or 0
    text = client.get(f"/runs/{finished}").text
    assert f'action="/runs/{finished}/extend"' in text
    answer = client.post(f"/runs/{finished}/extend", data={"candidates": "7", "minutes": ""}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    assert world.run(finished).budget.candidates == before + 7
    assert client.get("/api/v1/audit").json()["items"][0]["action"] == "extend_run"
    page = {"accept": "text/html"}
    assert client.post(f"/runs/{finished}/extend", data={}, headers=page).status_code == 422


def test_candidates_are_compared_side_by_side(client: TestClient, finished: str) -> None:
    items = client.get(f"/api/v1/runs/{finished}/candidates?order=fastest").json()["items"]
    ids = "&".join(f"id={item['id']}" for item in items)
    text = client.get(f"/compare?{ids}").text
    assert "Some of these numbers are confirmed and some are not." in text
    assert text.count('class="speed provisional"') == len(items) - 1
    assert "Choose two or more" in client.get("/compare").text
    assert "lines</span>" in client.get(f"/compare?id={items[0]['id']}&id={items[1]['id']}").text
    assert client.get("/compare?id=cand_00000000", headers={"accept": "text/html"}).status_code == 404
    assert client.get("/compare?id=%27", headers={"accept": "text/html"}).status_code == 404


def test_the_fleet_says_how_busy_a_device_was(client: TestClient, engine: Engine, finished: str) -> None:
    with write_session(engine) as s:
        register(s, DEVICE, ENVIRONMENT, ("no seccomp",))
    with read_session(engine) as s:
        used = fleet.hours(s)[DEVICE.uuid]
    assert sum(one.evaluations for one in used) > 0
    assert sum(one.busy_s for one in used) > 0
    text = client.get("/fleet").text
    assert "Test CPU" in text
    assert "no seccomp" in text
    assert "not recorded" in text
    assert DeviceKind.CPU.value in text
    with write_session(engine) as s:
        observed = {"utilisation_percent": 41, "cpu_mhz": 3100, "temperature_c": 62}
        record_heartbeat(s, "box:7", "cpu", device_uuid=DEVICE.uuid, observed=observed)
    text = client.get("/fleet").text
    for words in ("41 %", "3100 MHz", "62 °C", "box:7", "idle"):
        assert words in text, words
    (device,) = client.get("/api/v1/devices").json()["items"]
    assert device["observed"] == observed
    assert device["observed_at"] is not None


def test_the_form_offers_examples_and_shows_the_chosen_one(client: TestClient) -> None:
    empty = client.get("/submit").text
    assert '<a href="/submit?example=softmax_scale_mask">' in empty
    shown = client.get("/submit?example=softmax_scale_mask").text
    assert 'value="softmax_scale_mask"' in shown
    assert "class Model(nn.Module)" in html.unescape(shown)
    assert "/submit?example=" not in shown
    assert client.get("/submit?example=../settings").status_code == 404
