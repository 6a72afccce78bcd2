"""The dashboard in Chromium: every page, light and dark, on a desk and on a phone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from db.queues import JobKind
from tests.browser.conftest import Site

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (1280, 390)
# Set to a folder to keep pictures of every page.
PICTURES = os.environ.get("WARPWRIGHT_SCREENSHOTS")


@contextmanager
def looking(browser: Browser, width: int, scheme: Literal["light", "dark"]) -> Iterator[Page]:
    """A page of a fresh browser; whatever it complains about on its console fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": 860},
        color_scheme=scheme,
        device_scale_factor=2 if width < 500 else 1,
        timezone_id="Europe/Berlin",
        locale="en-GB",
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"{request.url}: {request.failure}"))
    yield page
    context.close()
    assert not [text for text in complaints if "ERR_ABORTED" not in text]


def check(page: Page, name: str, width: int, scheme: str) -> None:
    """No sideways scrolling, one main heading, and a picture where one is wanted."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_whole(site: Site, browser: Browser, width: int, scheme: Literal["light", "dark"]) -> None:
    with looking(browser, width, scheme) as page:
        page.goto(site.url)
        expect(page.get_by_role("heading", name="No champion yet")).to_be_visible()
        check(page, "empty", width, scheme)
    world = site.world()
    run = world.start()
    world.drain()
    champion = world.run(run.id).champion_id
    with looking(browser, width, scheme) as page:
        page.goto(site.url)
        row = page.get_by_role("row").nth(1)
        expect(row).to_contain_text("softmax")
        expect(row).to_contain_text("2.40×")
        check(page, "leaderboard", width, scheme)
        for name, path in (
            ("runs", "/runs"),
            ("run", f"/runs/{run.id}"),
            ("candidate", f"/candidates/{champion}"),
            ("problem", f"/problems/{run.problem_id}"),
        ):
            page.goto(site.url + path)
            check(page, name, width, scheme)
        expect(page.locator("time").first).not_to_contain_text("UTC")


def test_a_run_is_followed_live_without_shifting(site: Site, browser: Browser) -> None:
    world = site.world()
    run = world.start()
    with looking(browser, 1280, "light") as page:
        page.goto(f"{site.url}/runs/{run.id}")
        page.evaluate(
            "() => { window.shift = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) "
            "window.shift += entry.value; }).observe({ type: 'layout-shift', buffered: true }); }"
        )
        expect(page.get_by_role("heading", name="softmax")).to_be_visible()
        world.work(world.take(JobKind.JUDGE))
        expect(page.get_by_role("row").nth(1)).to_be_visible(timeout=10_000)
        world.drain()
        expect(page.locator("h1")).to_contain_text("finished", timeout=10_000)
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
    with looking(browser, 390, "dark") as page:
        page.on("console", lambda _: None)
        response = page.request.get(f"{site.url}/runs/nothing", headers={"accept": "text/html"})
        assert response.status == 404
        assert "There is no run with this id." in response.text()
