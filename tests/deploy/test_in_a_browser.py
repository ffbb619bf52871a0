"""A person's way: Chromium, the login's forms, Dagster's UI, and the quickstart on a few pages, made on the cluster."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from rehearsal import Rehearsal, rehearsal
from running import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

sync_api = pytest.importorskip("playwright.sync_api", reason="the group `rehearsal` is not installed: make rehearsal")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
JOB = "/locations/marin/jobs/quickstart_tiny"


@pytest.fixture
def deployment() -> Iterator[Rehearsal]:
    with rehearsal() as deployment:
        yield deployment


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed.")
def test_ada_makes_the_quickstart_and_bob_looks_at_it(deployment: Rehearsal) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = log_in(browser, "ada", deployment.layout.url + JOB)
        page.get_by_role("button", name="Materialize all").click(timeout=120_000)
        with deployment.instance() as instance:
            wait_until(instance.get_runs, "the run that the button launched")
            wait_until(lambda: instance.get_runs()[0].is_finished, "its end", timeout_s=1500)
            [run] = instance.get_runs()
            assert run.is_success
            assert run.job_name == "quickstart_tiny"
            assert run.tags["marin/user"] == "ada@lab.example"
            made = {asset.to_user_string() for asset in instance.all_asset_keys()}
        assert any("report" in name for name in made), made

        page = log_in(browser, "bob", f"{deployment.layout.url}/runs/{run.run_id}")
        page.get_by_text("Success", exact=True).first.wait_for(timeout=120_000)
        page.get_by_text("RUN_SUCCESS").first.wait_for(timeout=120_000)  # events come through the websocket
        page.goto(deployment.layout.url + JOB)
        button = page.get_by_role("button", name="Materialize all")
        button.wait_for(timeout=120_000)
        assert button.is_disabled(), "bob only reads"
        if folder := os.environ.get("PICTURES"):
            page.screenshot(path=f"{folder}/reader.png")
        browser.close()


def log_in(browser: sync_api.Browser, name: str, url: str) -> sync_api.Page:
    """A new person's browser at a page of the UI, by way of the login."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(url)
    page.fill("input[name=login]", name)
    page.fill("input[name=password]", "any")
    page.click("button[type=submit]")
    page.get_by_role("button", name="Continue").click()  # consent
    page.wait_for_url(f"{url}*", timeout=60_000)
    return page
