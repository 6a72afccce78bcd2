"""The HTTP client: paging, errors, and an event stream that breaks."""

from __future__ import annotations

import socket

import httpx2
import pytest

from tests.warpwright.fake_api import RUN_ID, FakeApi, event_object
from warpwright.api import Client
from warpwright.api.calling import error_of
from warpwright.api.searching import Run
from warpwright.errors import BadUsage, Refused, ServiceFailed, StackFailed, Unreachable


def test_lists_follow_cursors_to_the_end(api: FakeApi) -> None:
    with Client(api.url) as client:
        assert [run.id for run in client.each(client.list_runs)] == [f"run_{n}" for n in range(5)]


def test_a_problem_document_becomes_an_error_that_says_what_to_do(api: FakeApi) -> None:
    api.refuse["/api/v1/problems"] = (
        422,
        {
            "type": "https://x/problems/reference-invalid",
            "title": "Wrong",
            "detail": "line 3: define Model",
            "errors": [{"field": "source", "message": "too long"}],
        },
    )
    with Client(api.url) as client, pytest.raises(Refused) as caught:
        client.create_problem(name="p", source="x = 1")
    assert caught.value.status == 422
    assert caught.value.slug == "reference-invalid"
    assert "line 3: define Model" in str(caught.value)
    assert "source: too long" in str(caught.value)


def test_a_missing_key_is_told_with_the_variable_that_holds_it(api: FakeApi) -> None:
    api.refuse["/api/v1/problems"] = (401, {"detail": "Send an API key: Authorization: Bearer KEY."})
    with Client(api.url) as client, pytest.raises(Refused, match="It is taken from WARPWRIGHT_API_KEY"):
        client.create_problem(name="p", source="x = 1")


def test_a_page_of_another_server_is_not_shown() -> None:
    asked = httpx2.Request("GET", "http://127.0.0.1:80/api/v1/runs")
    error = error_of(httpx2.Response(404, html="<!DOCTYPE HTML><title>Not Found</title>", request=asked))
    assert str(error) == f"{asked.url} answered 404 with a page: is that the address of a service?"


def test_a_failing_service_and_a_missing_one_are_told_apart(api: FakeApi) -> None:
    api.refuse[f"/api/v1/runs/{RUN_ID}"] = (503, {"title": "busy", "detail": "try again"})
    with Client(api.url) as client, pytest.raises(ServiceFailed, match="try again"):
        client.get_run(RUN_ID)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with Client(f"http://127.0.0.1:{unused.getsockname()[1]}") as client, pytest.raises(Unreachable):
            client.get_run(RUN_ID)


def test_posts_carry_an_idempotency_key_and_the_body(api: FakeApi) -> None:
    with Client(api.url) as client:
        client.create_run(problem_id="prob_1", device="cpu", budget={"wall_s": 3.0}, config={"seed": 1})
    assert api.bodies == [{"problem_id": "prob_1", "device": "cpu", "budget": {"wall_s": 3.0}, "config": {"seed": 1}}]


def test_a_broken_stream_is_taken_up_where_it_stopped(api: FakeApi) -> None:
    api.breaks = [2, 5]
    api.run.update(status="running", end_reason=None)  # so that a cut stream does not look like the end
    with Client(api.url) as client:
        seen = [event.seq for event in client.follow(RUN_ID)]
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert api.resumed_from == ["", "2", "5"]


def test_a_run_that_was_extended_is_followed_to_its_last_end(api: FakeApi) -> None:
    api.events[2:4] = [event_object(3, "run.ended"), event_object(4, "run.extended")]
    with Client(api.url) as client:
        assert [event.seq for event in client.follow(RUN_ID)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_service_that_restarts_is_followed_on(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream ends whole, and the question for the run meets nobody."""
    api.breaks = [3]
    get_run, down = Client.get_run, [Unreachable("it restarts")]

    def restarting(client: Client, run_id: str) -> Run:
        if down:
            raise down.pop()
        return get_run(client, run_id)

    monkeypatch.setattr(Client, "get_run", restarting)
    with Client(api.url) as client:
        assert [event.seq for event in client.follow(RUN_ID)] == [1, 2, 3, 4, 5, 6, 7]
    assert api.resumed_from == ["", "3"]


def test_following_ends_with_a_run_that_ended_unseen(api: FakeApi) -> None:
    api.breaks = [3]
    with Client(api.url) as client:
        assert [event.seq for event in client.follow(RUN_ID)] == [1, 2, 3, 4, 5, 6, 7]
    assert api.resumed_from == [""]


def test_following_stops_when_the_stack_is_down(api: FakeApi) -> None:
    def down() -> None:
        raise StackFailed("the API keeps dying")

    with Client(api.url) as client, pytest.raises(StackFailed):
        list(client.follow(RUN_ID, check=down))


def test_a_key_that_no_header_can_carry_is_refused() -> None:
    for key in ("schlüssel", "two\nlines"):
        with pytest.raises(BadUsage, match="WARPWRIGHT_API_KEY"):
            Client("http://127.0.0.1:1", api_key=key)


def test_a_key_is_sent_as_a_bearer_token(api: FakeApi) -> None:
    with Client(api.url, api_key="secret") as client:
        assert client.http.headers["authorization"] == "Bearer secret"
