"""Lists: filters, order, cursors; and what a Run looks like from inside."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from starlette.testclient import TestClient

from db.engine import write_session
from db.queues import JobKind
from db.transitions.work.workers import record_heartbeat
from tests.db.world import World
from tests.service.conftest import PROBLEM
from tests.service.test_refusals import refused

API = "/api/v1"


def items(client: TestClient, path: str, **params: object) -> list[dict[str, Any]]:
    """The items of one page."""
    response = client.get(f"{API}/{path}", params=params)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["items"]
    return found


def test_candidates_are_filtered_and_sorted(client: TestClient, finished: str) -> None:
    path = f"runs/{finished}/candidates"
    every = items(client, path)
    assert {c["verdict"] for c in every} == {"PASSED", "INCORRECT_VALUES", "BUILD_ERROR"}
    assert [c["verdict"] for c in items(client, path, verdict="BUILD_ERROR")] == ["BUILD_ERROR"]
    assert items(client, path, language="cuda") == items(client, path, proposer="nobody") == []
    assert len(items(client, path, language="cpp", proposer="synthesiser")) == len(every)
    confirmed = items(client, path, confirmed="true")
    assert [c["confirmed"] for c in confirmed] == [True]
    assert len(items(client, path, confirmed="false")) == len(every) - 1
    assert {c["island"] for c in items(client, path, island=1)} <= {1}
    refused(client.get(f"{API}/{path}", params={"verdict": "FINE"}), 422)


@pytest.mark.parametrize("order", ["newest", "fastest"])
def test_a_deep_cursor_gives_every_candidate_once(client: TestClient, finished: str, order: str) -> None:
    path = f"runs/{finished}/candidates"
    whole = [c["id"] for c in items(client, path, order=order)]
    found, cursor = [], None
    while True:
        params = {"order": order, "limit": 1, **({"cursor": cursor} if cursor else {})}
        page = client.get(f"{API}/{path}", params=params).json()
        found += [c["id"] for c in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        other = {"order": order, "cursor": cursor, "verdict": "PASSED"}
        refused(client.get(f"{API}/{path}", params=other), 400, "bad-cursor")
    assert found == whole
    if order == "fastest":
        speedups = [c["speedup"]["value"] for c in items(client, path, order=order)]
        assert speedups == sorted(speedups, reverse=True)
        assert len(speedups) > 1


def test_problems_are_found_by_name_and_by_hash(client: TestClient) -> None:
    for name in ("softmax wide", "softmax 100%", "rmsnorm"):
        client.post(f"{API}/problems", json={"name": name, "source": PROBLEM + f"# {name}"})
    assert [p["name"] for p in items(client, "problems", q="SOFT")] == ["softmax 100%", "softmax wide"]
    assert [p["name"] for p in items(client, "problems", q="wide softmax")] == ["softmax wide"]
    assert [p["name"] for p in items(client, "problems", q="%")] == ["softmax 100%"]
    assert [p["name"] for p in items(client, "problems", family="softmax")] == [
        "rmsnorm",
        "softmax 100%",
        "softmax wide",
    ]
    assert items(client, "problems", family="matmul") == []
    one = items(client, "problems", q="rms")[0]
    assert [p["id"] for p in items(client, "problems", hash=one["hash"])] == [one["id"]]
    refused(client.get(f"{API}/problems", params={"hash": "x"}), 422)


def test_the_leaderboard_is_asked_summed_up_and_taken_home(client: TestClient, finished: str, world: World) -> None:
    champion = world.run(finished).champion_id
    row = items(client, "leaderboard")[0]
    assert row["candidate_id"] == champion
    same = {"q": "soft", "device": "cpu", "device_name": "Test CPU", "language": "cpp", "proposer": "synthesiser"}
    assert items(client, "leaderboard", problem_id=row["problem_id"], sort="newest", **same) == [row]
    assert items(client, "leaderboard", device="cuda") == items(client, "leaderboard", q="rope") == []
    (total,) = items(client, "leaderboard/summary")
    assert (total["champions"], total["best_candidate_id"]) == (1, champion)
    assert total["geometric_mean_speedup"] == pytest.approx(2.4)
    assert [group["group"] for group in items(client, "leaderboard/summary", by="language")] == ["cpp"]
    assert [group["group"] for group in items(client, "leaderboard/summary", by="family")] == [row["family"]]
    assert items(client, "leaderboard", family=row["family"]) == [row]
    assert items(client, "leaderboard", family="convolution") == []
    response = client.get(f"{API}/leaderboard.csv", params={"language": "cpp"})
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["content-disposition"] == 'attachment; filename="leaderboard.csv"'
    (record,) = csv.DictReader(io.StringIO(response.text))
    assert (record["candidate_id"], record["speedup"]) == (champion, "2.4")


def test_what_looks_like_a_formula_is_text_in_the_file(client: TestClient, world: World) -> None:
    client.post(f"{API}/problems", json={"name": '=HYPERLINK("http://evil")', "source": PROBLEM})
    world.start()
    world.drain()
    text = client.get(f"{API}/leaderboard.csv").text
    assert "'=HYPERLINK" in text
    assert ",=HYPERLINK" not in text
    assert '"=HYPERLINK' not in text


def test_a_problem_has_a_history_of_champions(client: TestClient, finished: str, world: World) -> None:
    problem_id = world.run(finished).problem_id
    body = {"problem_id": problem_id, "source": "speed=5.0 "}
    client.post(f"{API}/evaluations", json=body)
    world.drain()
    found = items(client, f"problems/{problem_id}/champions")
    assert [one["standing"] for one in found] == [True] + [False] * (len(found) - 1)
    assert found[0]["against_fastest"]["value"] == 5.0
    assert len(found) > 1


def test_a_run_from_inside(client: TestClient, finished: str, world: World) -> None:
    run = f"runs/{finished}"
    cells = items(client, f"{run}/archive")
    assert cells
    assert all(cell["elite"] for cell in cells)
    milestones = items(client, f"{run}/milestones")
    assert milestones[-1]["confirmed"]
    tallies = items(client, f"{run}/tallies")
    assert {tally["verdict"] for tally in tallies} >= {"PASSED", "BUILD_ERROR"}
    assert sum(arm["candidates"] for arm in items(client, f"{run}/arms")) == len(items(client, f"{run}/candidates"))
    assert items(client, f"{run}/jobs") == []


def test_lineage_goes_both_ways(client: TestClient, world: World) -> None:
    run = world.start()
    world.work(world.take(JobKind.ADVANCE))
    parents: list[str] = []
    for number in range(3):
        body = {"source": f"speed=1.{number} # {number}", "parents": parents}
        parents = [client.post(f"{API}/runs/{run.id}/candidates", json=body).json()["candidate_id"]]
    youngest = client.get(f"{API}/candidates/{parents[0]}/lineage").json()
    assert [one["number"] for one in youngest["ancestors"]] == [1, 2]
    assert youngest["descendants"] == []
    eldest = client.get(f"{API}/candidates/{youngest['ancestors'][0]['id']}/lineage").json()
    assert [one["number"] for one in eldest["descendants"]] == [2, 3]
    assert eldest["ancestors"] == []
    few = client.get(f"{API}/candidates/{parents[0]}/lineage", params={"most": 1}).json()
    assert [one["number"] for one in few["ancestors"]] == [2]


def test_queues_workers_models_and_spend(client: TestClient, world: World) -> None:
    run = world.start()
    assert [(one["queue"], one["ready"]) for one in items(client, "queues")] == [("cpu", 1)]
    assert world.claim("cpu", worker="box:1") is not None
    assert [(one["queue"], one["claimed"]) for one in items(client, "queues")] == [("cpu", 1)]
    (busy,) = items(client, "workers")
    assert (busy["worker"], busy["kind"]) == ("box:1", "admit")
    assert run.id not in str(busy)
    with write_session(world.engine) as s:
        record_heartbeat(s, "box:1", "cpu")
        record_heartbeat(s, "box:2", "build")
    assert [(one["worker"], one["kind"]) for one in items(client, "workers")] == [("box:1", "admit"), ("box:2", None)]
    assert items(client, "models") == []
    assert items(client, "spend") == []
    (own,) = items(client, "spend", by="project")
    assert (own["name"], own["runs"], own["usd"]) == ("default", 1, 0.0)
