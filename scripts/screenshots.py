"""Make the pictures of docs/images again: an optimisation really runs on this machine, then its pages are looked at.

    python scripts/screenshots.py [--candidates 4] [--problem examples/problems/bias_gelu.py ...] [--url URL RUN]

Each problem is optimised in turn; the first one's run and best candidate are shown, and all champions on the
leaderboard. Needs Chromium. With --url and a run's id the pages of a service that is up already are taken instead.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from warpwright.api import Client
from warpwright.stack.data_folder import DataFolder
from warpwright.stack.supervisor import Stack

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PROBLEMS = ROOT / "examples" / "problems"
SHOWN = ("bias_gelu.py", "rmsnorm_residual.py", "swiglu.py")
PATIENCE_S = 1800.0
# Name, address, width, height of the picture (None: the whole page).
SHOTS = (
    ("leaderboard", "/", 1280, 420),
    ("run", "/runs/{run}", 1280, 860),
    ("candidate", "/candidates/{best}", 1280, 860),
    ("run-narrow", "/runs/{run}", 390, 900),
)


def main() -> int:
    """Exit status: 0, or 1 where the run came to nothing that could be shown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", type=Path, nargs="+", default=[PROBLEMS / name for name in SHOWN])
    parser.add_argument("--candidates", type=int, default=4, help="for each problem")
    parser.add_argument("--url", nargs=2, metavar=("URL", "RUN"))
    chosen = parser.parse_args()
    if chosen.url:
        return take(*chosen.url)
    with service() as url:
        runs = [optimise(url, problem, chosen.candidates) for problem in chosen.problem]
        return take(url, runs[0])


@contextmanager
def service() -> Iterator[str]:
    """The embedded stack on a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        data = DataFolder(Path(folder))
        with data.locked(), Stack(data, workers=("control", "propose", "build", "cpu")) as stack:
            yield stack.url


def optimise(url: str, problem: Path, candidates: int) -> str:
    """Run it to its end; returns the run's id."""
    deadline = time.monotonic() + PATIENCE_S
    with Client(url) as client:
        stored = client.create_problem(name=problem.stem, source=problem.read_text(encoding="utf-8"))
        run = client.create_run(problem_id=stored.id, device="cpu", budget={"candidates": candidates}).id
        while time.monotonic() < deadline:
            if client.get_run(run).status in ("finished", "failed", "cancelled"):
                return run
            time.sleep(1.0)
    raise SystemExit(f"{run} has not ended after {PATIENCE_S:.0f} s")


def take(url: str, run: str) -> int:
    """The pictures, light and dark."""
    with Client(url) as client:
        state = client.get_run(run)
    best = state.champion_id or state.best_id
    if best is None:
        print("nothing passed, so there is nothing to show", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        for name, path, width, height in SHOTS:
            for scheme in ("light", "dark"):
                shoot(browser, f"{url}{path.format(run=run, best=best)}", width, height, scheme, name)
        browser.close()
    return 0


def shoot(browser: Browser, address: str, width: int, height: int, scheme: str, name: str) -> None:
    """One picture. The reader's own settings are left out of it."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        device_scale_factor=1.5 if width > 500 else 2,
        timezone_id="UTC",
        locale="en-GB",
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"{name}-{scheme}.png")
    context.close()


if __name__ == "__main__":
    raise SystemExit(main())
