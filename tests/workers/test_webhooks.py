"""Webhooks: signed, retried, never inward, never redirected, and no longer than their deadline."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from db.engine import read_session, write_session
from db.repositories.work import webhooks
from db.transitions.work.webhooks import set_webhook
from db.views.work import WebhookWork
from runtime.addresses import is_public, read_url
from tests.workers.conftest import Shop, drain
from workers.errors import DestinationRefused
from workers.webhooks import DeliveryLimits, addresses, deliver, signature

SECRET = "a secret of sixteen"


class Listener(ThreadingHTTPServer):
    """Answers with `statuses` in turn, the last for ever; a negative one drips its headers for ever."""

    daemon_threads = True

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        self.closing.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((dict(self.headers), body))
        statuses = self.server.statuses
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        if status < 0:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.closing.wait(0.05):
                try:
                    self.wfile.write(b"X-Drip: 1\r\n")
                except OSError:
                    return
            return
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("location", f"http://{self.server.authority}/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()


@pytest.fixture
def listen() -> Iterator[Any]:
    made: list[Listener] = []

    def start(*statuses: int) -> Listener:
        made.append(Listener(*statuses))
        return made[-1]

    yield start
    for listener in made:
        listener.stop()


def work(url: str) -> WebhookWork:
    return WebhookWork(run_id="run_1", url=url, secret=SECRET, delivery_id="run_1-1", body='{"type":"run.ended"}')


def limits(listener: Listener, deadline_s: float = 20.0) -> DeliveryLimits:
    return DeliveryLimits(deadline_s=deadline_s, allowed_hosts=(listener.authority,), pauses_s=(0.0, 0.0, 0.0))


def never(_: float) -> bool:
    return False


def test_it_is_signed_so_that_neither_body_nor_time_can_be_changed(listen: Any) -> None:
    listener = listen(204)
    delivery = deliver(work(f"http://{listener.authority}/done?x=1"), limits(listener), wait=never)
    assert (delivery.delivered, delivery.attempts, delivery.status) == (True, 1, 204)
    ((headers, body),) = listener.got
    stamp, mac = (part.split("=")[1] for part in headers["Warpwright-Signature"].split(","))
    expected = hmac.new(SECRET.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(mac, expected)
    assert signature(SECRET, int(stamp) + 1, body.decode()) != headers["Warpwright-Signature"]
    assert json.loads(body) == {"type": "run.ended"}
    assert headers["Warpwright-Delivery"] == "run_1-1"
    assert SECRET not in str(headers) + repr(work("http://x/"))


def test_what_may_pass_is_tried_again(listen: Any) -> None:
    listener = listen(500, 429, 200)
    delivery = deliver(work(f"http://{listener.authority}/"), limits(listener), wait=never)
    assert (delivery.delivered, delivery.attempts) == (True, 3)


@pytest.mark.parametrize(("status", "attempts"), [(503, 4), (404, 1), (302, 1), (307, 1)])
def test_what_is_not_taken_is_written_down(listen: Any, status: int, attempts: int) -> None:
    listener = listen(status)
    delivery = deliver(work(f"http://{listener.authority}/"), limits(listener), wait=never)
    assert (delivery.delivered, delivery.attempts, delivery.status) == (False, attempts, status)
    assert str(status) in delivery.error
    assert len(listener.got) == attempts


def test_a_dripping_answer_ends_with_the_time(listen: Any) -> None:
    listener = listen(-1)
    delivery = deliver(work(f"http://{listener.authority}/"), limits(listener, deadline_s=0.4), wait=never)
    assert not delivery.delivered


def test_nobody_there_and_a_worker_that_stops(listen: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        authority = f"127.0.0.1:{taken.getsockname()[1]}"
        only = DeliveryLimits(deadline_s=60.0, allowed_hosts=(authority,))
        delivery = deliver(work(f"http://{authority}/"), only, wait=lambda _: True)
    assert (delivery.delivered, delivery.attempts) == (False, 1)
    assert "ConnectionRefused" in delivery.error


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_loopback_is_refused_however_it_is_written(listen: Any, host: str) -> None:
    listener = listen(200)
    url = f"http://{host}:{listener.server_address[1]}/"
    delivery = deliver(work(url), DeliveryLimits(deadline_s=60.0), wait=never)
    assert not delivery.delivered
    assert listener.got == []


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "240.0.0.1",
     "255.255.255.255", "::", "::1", "fe80::1", "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
     "2002:7f00:1::", "fec0::1", "192.0.2.1", "198.18.0.1"],
)  # fmt: skip
def test_what_is_not_of_the_open_internet_is_known(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_what_is_of_the_open_internet_is_known(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_one_internal_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(DestinationRefused, match="not public"):
        addresses(read_url("http://rebind.example/"), ())
    assert addresses(read_url("http://rebind.example/"), ("rebind.example",)) == ["8.8.8.8", "10.0.0.1"]


def test_the_connection_goes_to_the_address_that_was_looked_at(listen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = listen(200)
    answers = iter(["127.0.0.1", "127.0.0.2", "127.0.0.3"])
    asked: list[str] = []

    def resolve(host: str, port: int, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        ip = host if host.startswith("127.") else next(answers)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    port = listener.server_address[1]
    only = DeliveryLimits(deadline_s=60.0, allowed_hosts=(f"hook.example:{port}",), pauses_s=())
    assert deliver(work(f"http://hook.example:{port}/"), only, wait=never).delivered
    assert asked.count("hook.example") == 1
    assert listener.got[0][0]["Host"] == f"hook.example:{port}"


@pytest.mark.parametrize(
    "url",
    ["ftp://x/", "http://", "http://user@x/", "http://x/#f", "http://x y/", "http://x:99999/", "http://x%2e/", "x",
     "http://x\\@y/", "http://\u0000/", "http://bücher.example/", "http://[::1/",
     "http://a..b/", f"http://{'a' * 64}.com/", f"http://{'a.' * 127}b/", "http://-a.com/", "http://x:0/"],
)  # fmt: skip
def test_an_odd_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        read_url(url)


def test_a_worker_tells_of_the_end_of_a_run_once(listen: Any, shop: Shop) -> None:
    listener = listen(200)
    context = shop.context(webhook_internal_hosts=(listener.authority,))
    run = shop.start("speed=1.5", candidates=1)
    with write_session(context.engine) as s:
        set_webhook(s, run.id, f"http://{listener.authority}/done", SECRET)
    drain(context)
    ((_, body),) = listener.got
    told = json.loads(body)["run"]
    ended = shop.run(run.id)
    assert (told["id"], told["status"], told["champion_id"]) == (run.id, ended.status, ended.champion_id)
    with read_session(context.engine) as s:
        hook = webhooks.get(s, run.id)
    assert (hook.state, hook.status, hook.attempts) == ("delivered", 200, 1)


def test_a_worker_that_may_not_go_there_says_so(listen: Any, shop: Shop) -> None:
    listener = listen(200)
    context = shop.context()
    run = shop.start("speed=1.5", candidates=1)
    with write_session(context.engine) as s:
        set_webhook(s, run.id, f"http://{listener.authority}/done", SECRET)
    drain(context)
    assert listener.got == []
    with read_session(context.engine) as s:
        hook = webhooks.get(s, run.id)
    assert (hook.state, hook.attempts) == ("failed", 1)
    assert "not public" in hook.error
