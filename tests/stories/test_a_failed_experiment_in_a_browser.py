"""In a real Chromium, wide and narrow: the page of a failed experiment leads to the failing log in two clicks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_server import browsing
from experiments_for_pages import LAST_LINE, failed_experiment, partitioned_experiment
from recorded_steps import Recorded

from marin_assets.experiment_page.from_record import steps_of_record
from marin_assets.experiment_page.page import page_of
from marin_resources.storage.output.store import Store

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (1280, 390)


@pytest.fixture(params=WIDTHS)
def tab(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A tab of a window of this width, without an error in its console."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="the group `rehearsal` is not installed")
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = chromium.new_page(viewport={"width": request.param, "height": 900})
        messages: list[str] = []
        tab.on("console", lambda message: messages.append(message.text))
        tab.on("pageerror", lambda error: messages.append(str(error)))
        yield tab
        chromium.close()
        assert messages == []


def require_fits(tab: Any) -> None:
    """Nothing is cut at the edge: the page itself never scrolls sideways."""
    width, inner = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= inner


def is_at_its_end(element: Any) -> bool:
    """Whether the last line of a text that scrolls is the one that is seen."""
    seen: bool = element.evaluate("e => e.scrollTop === 0 && e.scrollHeight > e.clientHeight")  # reversed: 0 is the end
    return seen


def test_the_page_in_a_file_has_the_failing_log_behind_one_click(tab: Any, tmp_path: Path) -> None:
    here = Recorded(Store(str(tmp_path / "prefix")))
    file = tmp_path / "web.html"
    file.write_text(page_of(steps_of_record(failed_experiment(here))))
    tab.goto(file.as_uri())
    require_fits(tab)
    line = tab.locator(".attention .line")
    assert line.inner_text() == LAST_LINE
    assert line.bounding_box()["y"] < 900  # on the first screen
    log = tab.locator(".attention pre")
    assert not log.is_visible()
    tab.get_by_text("last lines of its log").click()
    assert log.is_visible()
    assert log.inner_text().endswith(LAST_LINE)
    assert is_at_its_end(log)
    require_fits(tab)
    tab.locator(".dag .failed").click()  # a box leads to its step
    assert tab.url.endswith("#step-filtered/web")


def test_the_browser_leads_from_the_list_to_the_failing_log_in_two_clicks(tab: Any, tmp_path: Path) -> None:
    here = Recorded(Store(str(tmp_path / "prefix")))
    failed_experiment(here)
    partitioned_experiment(here)
    with browsing(here.store.prefix) as server:
        tab.goto(f"http://127.0.0.1:{server.port}/experiments?state=failed&name=web")
        require_fits(tab)
        tab.locator("[data-open]").click()
        require_fits(tab)
        assert tab.locator(".attention .line").inner_text() == LAST_LINE
        styled = tab.locator(".attention").evaluate("element => getComputedStyle(element).borderLeftWidth")
        assert styled == "4px"  # the policy lets the page have its style
        tab.get_by_text("whole log").click()
        assert tab.locator("pre").inner_text().rstrip().endswith(LAST_LINE)
        assert "shard 0 of 400 read" in tab.locator("pre").inner_text()
        end = tab.locator("pre").bounding_box()
        assert end["y"] + end["height"] <= 900  # the last line is on the screen
        require_fits(tab)
        tab.goto(f"http://127.0.0.1:{server.port}/experiments?name=months")
        tab.locator("[data-open]").click()
        require_fits(tab)
        tab.locator("[id='partitions-documents/months']").get_by_role("link", name="2026-02").click()
        assert "incomplete: FAILED" in tab.locator("main").inner_text()
