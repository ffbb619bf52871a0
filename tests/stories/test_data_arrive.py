"""The experiment of deliveries as a person meets it: after `make quickstart`, in the UI, and when data arrive."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_dev import DagsterDev, dagster_dev
from running import ROOT, wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MODULE = "marin_assets.experiments.text_deliveries"
CHAIN = ("text_deliveries/raw", "text_deliveries/documents", "text_deliveries/tokenized")


@pytest.fixture
def env(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}


@pytest.fixture
def dev(env: dict[str, str], tmp_path: Path) -> Iterator[DagsterDev]:
    assert run(env, "--example").endswith("2 computed, 0 reused, 0 failed\n")
    with dagster_dev(ROOT / "workspace.yaml", tmp_path / "dev.log", env) as dev:
        yield dev


def run(env: dict[str, str], *options: str) -> str:
    """What the experiment's script logs."""
    command = [sys.executable, "-m", MODULE, *options]
    done = subprocess.run(
        command, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def deliver(prefix: Path, name: str) -> None:
    folder = prefix / "inbox/help" / name
    folder.mkdir(parents=True)
    with gzip.open(folder / "a.jsonl.gz", "wt") as file:
        paragraphs = (ROOT / "docs/tutorial.md").read_text().split("\n\n")
        file.writelines(json.dumps({"title": f"t{i}", "body": body}) + "\n" for i, body in enumerate(paragraphs))
    (folder / "_SUCCESS").touch()


def partitions(dev: DagsterDev) -> dict[str, dict[str, int]]:
    return {asset: dev.partitions(asset) for asset in CHAIN}


def test_the_example_leaves_one_delivery_to_be_made_and_again_it_computes_nothing(
    env: dict[str, str], prefix: Path
) -> None:
    first = run(env, "--example")
    assert "new in the set 'deliveries': 2026-01, 2026-02" in first
    assert "new in the set 'delivery_snapshots': until-2026-02" in first
    assert [path.name for path in sorted(prefix.glob("tokenized/text_deliveries-*/*"))] == ["2026-01", "2026-02"]
    with dg.DagsterInstance.get() as instance:
        assert instance.get_dynamic_partitions("deliveries") == ["2026-01", "2026-02", "2026-03"]
    again = run(env, "--example")
    assert [line for line in again.splitlines() if " computed, " in line] == [
        "0 computed, 7 reused, 0 failed",
        "0 computed, 2 reused, 0 failed",
    ]


def test_a_delivery_that_arrives_is_computed_by_the_sensor_that_a_person_switches_on(
    dev: DagsterDev, env: dict[str, str], prefix: Path
) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the group `rehearsal` is missing: make rehearsal")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed.")
    assert partitions(dev) == {asset: {"materialized": 2, "failed": 0} for asset in CHAIN}
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{dev.url}/locations/marin/sensors/new_deliveries")
        page.get_by_text("A delivery is complete when").first.wait_for(timeout=120_000)
        picture(page, "sensor")
        switch_on(page)
        deliver(prefix, "2026-04")
        # with the example's third one; the first two are complete, and their runs reuse them
        made = {asset: {"materialized": 4, "failed": 0} for asset in CHAIN}
        wait_until(lambda: partitions(dev) == made, "the delivery's outputs", timeout_s=900)
        page.goto(f"{dev.url}/assets/text_deliveries/tokenized?view=partitions")
        page.get_by_text("2026-04").first.wait_for(timeout=120_000)
        page.get_by_text("Materialized (4)").first.wait_for(timeout=120_000)
        picture(page, "partitions")
        page.goto(f"{dev.url}/locations/marin/sensors/new_deliveries")
        page.get_by_text("RUNNING").or_(page.get_by_text("requested")).first.wait_for(timeout=120_000)
        picture(page, "ticks")
        browser.close()
    until = run(env, "--select", "snapshots", "--select", "checkpoints", "--partition", "until-2026-04")
    assert until.endswith("2 computed, 0 reused, 0 failed\n")
    [listing] = prefix.glob("snapshots/text_deliveries-*/until-2026-04/partitions.json")
    listed = [row["key"] for row in json.loads(listing.read_text())["partitions"]]
    assert listed == ["2026-01", "2026-02", "2026-03", "2026-04"]


def switch_on(page: Any) -> None:
    """Click the switch of the sensor on its page, which is drawn beside its checkbox."""
    page.locator("input[type=checkbox]").first.evaluate("box => box.click()")


def picture(page: Any, name: str) -> None:
    """Save what is on the screen, for a person to look at."""
    if folder := os.environ.get("PICTURES"):
        page.wait_for_timeout(3000)
        page.screenshot(path=f"{folder}/{name}.png")
