"""A real service in a process of its own, states made through `db`, and Chromium to look at them with."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from sqlalchemy import Engine

from db.engine import make_engine
from evaluator.problem import read_problem
from tests.db.world import World, from_list
from tests.service.conftest import PROBLEM, SOURCES

ROOT = Path(__file__).parents[2]
# Features of Chromium that are off: those that Playwright turns off, whose list this one replaces; and the address
# bar's suggestions, two pages that each window without one loads for half a second.
WITHOUT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled",
    "PreconnectToSearch",
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup",
)  # fmt: skip
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


@pytest.hookimpl(tryfirst=True)  # before the tests to run are chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.stack)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium here: apt-get install chromium"))


@dataclass
class Site:
    """A running service and a hand on its database. Tests share it, so each works on a Problem of its own."""

    url: str
    engine: Engine
    numbers: Iterator[int]

    def world(self) -> World:
        source = f"{PROBLEM}# {next(self.numbers)}\n"
        return World(self.engine, propose=from_list(*SOURCES), problem=read_problem(source, "softmax"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    tmp_path = tmp_path_factory.mktemp("site")
    variables = {
        "WARPWRIGHT_DATABASE_URL": f"sqlite:///{tmp_path / 'site.db'}",
        "WARPWRIGHT_REDIS_URL": "redis://127.0.0.1:1/0",
        "WARPWRIGHT_DATA_DIR": str(tmp_path),
        "WARPWRIGHT_PORT": "0",
    }
    with (tmp_path / "service.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "service"],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, (tmp_path / "service.log").read_text()
        engine = make_engine(variables["WARPWRIGHT_DATABASE_URL"])
        yield Site(json.loads(line)["url"], engine, itertools.count())
        engine.dispose()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")  # Playwright keeps an event loop running, which other files' tests must not meet
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=20_000)  # a page may be slow on a machine that judges meanwhile
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                f"--disable-features={','.join(WITHOUT)}",
            ],
        )
        yield launched
        launched.close()
