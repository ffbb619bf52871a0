"""Two evaluations are compared in a real Chromium: from an output to the questions at which they differ, by keys."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from browser_server import browsing
from stored_evaluations import answers, choice_row, store_evaluation, text_row

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SHOTS = os.environ.get("MARIN_TEST_PICTURES", "")
"""A folder for pictures of the pages, for a person."""
WORDS = "The experiment used a long name_without_any_space_that_could_break_a_line_of_a_narrow_screen and few words. "


def evaluations(prefix: Path) -> list[str]:
    """Two models on 250 questions: they differ at 60."""
    names = ("evaluations/base", "evaluations/tuned-with-a-longer-name")
    right = ([1] * 150 + [0] * 100, [1] * 120 + [0] * 100 + [1] * 30)
    paths = []
    for name, of, said in zip(names, right, ("4", "22"), strict=True):
        rows = [*answers(of), text_row(2, f" {said}"), choice_row(7, 1, task="long", context=WORDS * 12)]
        paths.append(store_evaluation(prefix, name, rows))
    return paths


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_person_finds_the_questions_at_which_two_models_differ(tmp_path: Path, width: int) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    base, tuned = evaluations(tmp_path)
    with browsing(str(tmp_path)) as server, sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM)
        tab = chromium.new_page(viewport={"width": width, "height": 900})
        errors: list[str] = []
        tab.on("pageerror", lambda error: errors.append(str(error)))

        def is_whole(name: str) -> None:
            """The page fits the screen; its picture is kept where a folder is given for it."""
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            if SHOTS:
                tab.screenshot(path=f"{SHOTS}/{name}-{width}.png", full_page=name != "list")

        tab.goto(f"http://127.0.0.1:{server.port}/output?path={base}")
        tab.get_by_role("link", name="Compare its answers with another evaluation").click()
        is_whole("choice")
        tab.get_by_role("link", name="evaluations/tuned-with-a-longer-name").click()
        is_whole("list")
        tab.get_by_role("link", name="61 at which they differ").click()
        assert tab.locator(".question").count() == 61
        is_whole("differ")
        address = tab.url
        tab.keyboard.press("j")
        tab.keyboard.press("j")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/models?*question=*")
        assert tab.get_by_text("2 of 61 questions of this selection").is_visible()
        is_whole("question")
        tab.keyboard.press("n")
        tab.get_by_text("3 of 61 questions of this selection").wait_for()
        tab.keyboard.press("p")
        tab.get_by_text("2 of 61 questions of this selection").wait_for()
        tab.goto(address)
        tab.locator(".patterns a").filter(has_text="31").click()
        tab.get_by_text("1 to 31 of 31 that match").wait_for()
        tab.goto(f"http://127.0.0.1:{server.port}/models?model={base}&model={tuned}")
        tab.get_by_label("Text in the question").fill("number 24")
        tab.get_by_role("button", name="Show").click()
        tab.get_by_text("1 to 11 of 11 that match").wait_for()
        tab.goto(f"http://127.0.0.1:{server.port}/models?model={base}&model={tuned}")
        tab.keyboard.press("n")
        tab.get_by_text("101 to 200 of 252").wait_for()
        tab.goto(f"http://127.0.0.1:{server.port}/models?model={base}&model={tuned}&task=long&question=251")
        is_whole("long")
        chromium.close()
        assert errors == []
