"""The dashboard in Chromium, on states made to order: live without shifting, by keyboard, one stream for all pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from db.engine import write_session
from db.queues import JobKind
from db.transitions.work.devices import register
from tests.browser.conftest import Site
from tests.browser.looking import check, looking, measure_shift
from tests.db.world import DEVICE, ENVIRONMENT


def test_a_run_is_followed_live_without_shifting(site: Site, browser: Browser) -> None:
    world = site.world()
    run = world.start()
    with looking(browser, 1280, "light") as page:
        page.goto(f"{site.url}/runs/{run.id}")
        measure_shift(page)
        expect(page.get_by_role("heading", name="softmax")).to_be_visible()
        world.work(world.take(JobKind.JUDGE))
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        world.drain()
        expect(page.locator("h1")).to_contain_text("finished")
        expect(page.locator(".figure")).to_have_text("2.40×")
        assert page.evaluate("window.shift") < 0.1


def test_the_keyboard_reaches_everything(site: Site, browser: Browser) -> None:
    world = site.world()
    world.start()
    world.drain()
    with looking(browser, 1280, "light") as page:
        page.goto(site.url)
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        names = []
        for _ in range(16):
            page.keyboard.press("Tab")
            names.append(page.evaluate("document.activeElement.getAttribute('href') ?? ''"))
        assert any(name.startswith("/problems/") for name in names)
        assert any("download" in name for name in names)


def test_a_kernel_is_downloaded_with_one_click(site: Site, browser: Browser) -> None:
    world = site.world()
    run = world.start()
    world.drain()
    with looking(browser, 1280, "light") as page:
        page.goto(f"{site.url}/runs/{run.id}")
        with page.expect_download() as waiting:
            page.get_by_role("link", name="Download .py").click()
        assert waiting.value.suggested_filename == "softmax_cpu.py"
        assert "class ModelNew" in Path(waiting.value.path()).read_text(encoding="utf-8")


def test_what_is_not_there_is_said_on_a_page(site: Site, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 860}, color_scheme="dark")
    page = context.new_page()
    response = page.goto(f"{site.url}/runs/nothing")
    assert response is not None
    assert response.status == 404
    expect(page.get_by_text("There is no run with this id.")).to_be_visible()
    check(page, "missing", 390, "dark")
    context.close()


def test_pages_of_one_browser_share_a_stream(site: Site, browser: Browser) -> None:
    """Two pages follow a run through one connection, and a third that comes late misses nothing."""
    world = site.world()
    run = world.start()
    address = f"{site.url}/runs/{run.id}"
    with looking(browser, 1280, "light") as first:
        first.goto(address)
        second = first.context.new_page()
        second.goto(address)
        world.work(world.take(JobKind.JUDGE))
        for page in (first, second):
            expect(page.locator("tbody tr[id^=row-]").first).to_be_visible()
        metrics = first.request.get(f"{site.url}/metrics").text()
        assert "warpwright_event_followers 1.0" in metrics, metrics
        third = first.context.new_page()
        third.goto(address)
        world.drain()
        for page in (first, second, third):
            expect(page.locator("h1")).to_contain_text("finished")


def test_sign_out_covers_nothing_on_a_phone(site: Site, browser: Browser) -> None:
    with looking(browser, 390, "light") as page:
        page.goto(site.url)
        page.evaluate(
            """() => document.querySelector(".top .frame").insertAdjacentHTML(
                "beforeend", '<form class="signout"><button type="button">Sign out</button></form>')"""
        )
        leave = page.get_by_role("button", name="Sign out").bounding_box()
        start = page.get_by_role("link", name="New run").first.bounding_box()
        assert leave is not None
        assert start is not None
        assert leave["y"] + leave["height"] <= start["y"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_header_line_spans_the_window(site: Site, browser: Browser, width: int) -> None:
    with looking(browser, width, "light") as page:
        page.goto(site.url)
        header = page.locator("header.top").bounding_box()
        assert header is not None
        assert (header["x"], header["width"]) == (0, width)


def test_an_operation_is_tried_on_the_page_of_the_api(site: Site, browser: Browser) -> None:
    world = site.world()
    run = world.start()
    world.drain()
    with looking(browser, 390, "dark") as page:
        page.goto(f"{site.url}/docs?part=runs#get_run")
        form = page.locator("#get_run")
        form.get_by_label("id (required)").fill(run.id)
        expect(form.locator(".curl")).to_have_text(f"curl '{site.url}/api/v1/runs/{run.id}'")
        form.get_by_role("button", name="Send").click()
        expect(form.get_by_role("status")).to_contain_text("200 OK")
        expect(form.get_by_label("Answer", exact=True)).to_contain_text('"status": "finished"')
        check(page, "api", 390, "dark")
        page.goto(f"{site.url}/docs?part=runs#cancel_run")
        form = page.locator("#cancel_run")
        form.get_by_label("id (required)").fill(run.id)
        form.get_by_role("button", name="Send").click()
        expect(form.get_by_role("status")).to_contain_text("200 OK")


def test_a_row_of_the_leaderboard_leads_to_the_kernel_in_colours(site: Site, browser: Browser) -> None:
    world = site.world()
    world.start()
    world.drain()
    with looking(browser, 1280, "dark") as page:
        page.goto(site.url)
        page.locator("tbody tr[id^=row-] th").first.get_by_role("link", name="softmax").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert "/candidates/" in page.url
        page.get_by_role("link", name="Source", exact=True).click()
        keyword = page.locator(".code .k, .code .kn").first
        colour = "one => getComputedStyle(one).color"
        assert keyword.evaluate(colour) != page.locator(".code pre").first.evaluate(colour)


def test_labels_of_the_fleet_begin_alike_and_values_have_units(site: Site, browser: Browser) -> None:
    with write_session(site.engine) as session:
        facts = {"l2_bytes": 52_428_800, "bandwidth_bytes_per_s": 4.8e12, "max_sm_mhz": 1980, "power_limit_w": None}
        register(session, replace(DEVICE, uuid="labels", facts=facts), ENVIRONMENT, ())
    with looking(browser, 390, "light") as page:
        page.goto(f"{site.url}/fleet")
        labels = page.locator(".devices dt").all_inner_texts()
        assert {"L2", "Bandwidth", "Max SM", "Power limit", "PyTorch"} <= set(labels)
        assert [label for label in labels if not label[0].isupper()] == []
        for value in ("50 MiB", "4,800 GB/s", "1980 MHz"):
            expect(page.get_by_text(value, exact=True)).to_be_visible()
        check(page, "fleet-labels", 390, "light")
