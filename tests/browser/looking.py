"""Open a page in a fresh browser, collect its complaints and axe's findings, and take a picture if wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]
# Set to a folder to keep pictures of every page.
PICTURES = os.environ.get("WARPWRIGHT_SCREENSHOTS")
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")


@contextmanager
def looking(browser: Browser, width: int, scheme: Scheme) -> Iterator[Page]:
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


# Both schemes and both widths meet axe; all four pairs of them would only take longer.
LOOKED_AT_BY_AXE = ((1280, "light"), (390, "dark"))


def check(page: Page, name: str, width: int, scheme: Scheme) -> None:
    """No sideways scrolling, one main heading, nothing serious for axe, and a picture where one is wanted."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{scheme}.png", full_page=True)
    if (width, scheme) in LOOKED_AT_BY_AXE:
        assert serious(page) == [], page.url


def serious(page: Page) -> list[str]:
    """Return axe's serious and critical findings on this page."""
    page.evaluate(AXE)
    found: list[dict[str, Any]] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


SHIFT = """() => {
  window.shift = 0;
  window.shifted = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      window.shift += entry.value;
      const names = entry.sources.map((one) => one.node?.id || one.node?.className || one.node?.nodeName);
      window.shifted.push(`${entry.value.toFixed(4)}: ${names}`);
    }
  }).observe({ type: "layout-shift" });
}"""


def measure_shift(page: Page) -> None:
    """Begin to add up layout shifts in `window.shift`; `window.shifted` says what moved."""
    page.evaluate(SHIFT)
