"""Two journeys in a real Chromium, on a wide and on a narrow screen: why a document was rejected, and what a model was
trained on at step 100. By clicks, or by keys alone."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from browser_server import browsing
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.documents import Document
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json, write_json
from marin_resources.wire.config_json import encode, plain

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (1280, 390)
QUALITY = "attributes/topics/quality"
BAD = sorted(topics)[3::4]
"""Documents that the attribute rejects."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents, an attribute, a consolidation, its tokens, and the record of a training of 400 steps on them."""
    prefix = tmp_path_factory.mktemp("prefix")
    documents = [Document(id=name, text=text, source="pydoc") for name, text in sorted(topics.items())]
    store_output(str(prefix), "documents/topics", {"part-0.jsonl.zst": [document.row() for document in documents]})
    store_output(str(prefix), QUALITY, {}, reads=["documents/topics-abc123"])
    decisions = ((d.id, Decision(keep=d.id not in BAD, reason="low" * (d.id in BAD), value=0.25)) for d in documents)
    write_decisions(str(prefix / f"{QUALITY}-abc123/part-0.jsonl.zst"), decisions, Counter())
    applied = Applied(name="quality", path=str(prefix / f"{QUALITY}-abc123"))
    selection = ConsolidateConfig(
        documents_path=str(prefix / "documents/topics-abc123"),
        attributes=[applied],
        output_path=str(prefix / "selected/topics-abc123"),
    )
    reads = ["documents/topics-abc123", f"{QUALITY}-abc123"]
    stored(prefix, "selected/topics", "marin_assets.stages.consolidate.consolidate:consolidate", selection, reads)
    consolidate(unwrap_versioned_value(selection))
    tokenizer, cache = str(prefix / "tokenizers/topics-abc123"), str(prefix / "tokenized/topics-abc123")
    train_tokenizer(
        unwrap_versioned_value(
            TrainTokenizerConfig(documents_path=selection.output_path, output_path=tokenizer, vocab_size=512)
        )
    )
    store_output(str(prefix), "tokenizers/topics", {}, reads=["selected/topics-abc123"])
    tokenize(
        unwrap_versioned_value(
            TokenizeConfig(
                documents_path=selection.output_path,
                tokenizer_path=tokenizer,
                output_path=cache,
                validation_fraction=0.2,
            )
        )
    )
    reads = ["selected/topics-abc123", "tokenizers/topics-abc123"]
    store_output(str(prefix), "tokenized/topics", {}, reads=reads)
    training = TrainLmConfig(
        components={"topics": cache},
        tokenizer_path=tokenizer,
        output_path=str(prefix / "models/topics-abc123"),
        model=LlamaSpec(max_seq_len=512),
        num_train_steps=400,
        train_batch_size=16,
    )
    reads = ["tokenized/topics-abc123", "tokenizers/topics-abc123"]
    stored(prefix, "models/topics", "marin_assets.stages.train.train_lm:train_lm", training, reads)
    return prefix


def stored(prefix: Path, name: str, function: str, config: Any, reads: list[str]) -> None:
    """Store the control files of an output with its config."""
    store_output(str(prefix), name, {}, reads=reads, config=plain(encode(unwrap_versioned_value(config))))
    path = str(prefix / f"{name}-abc123/.executor_info")
    write_json(path, read_json(path) | {"fn_name": function})


@pytest.fixture(scope="module")
def server(prefix: Path) -> Iterator[str]:
    with browsing(str(prefix), limits=Limits(seconds=300)) as browser:
        yield f"http://127.0.0.1:{browser.port}"


@pytest.fixture(params=WIDTHS)
def tab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the group `rehearsal` is not installed")
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": request.param, "height": 900})
        page.set_default_timeout(300_000)
        yield page
        chromium.close()


def look(tab: Any, name: str) -> None:
    """The page fits the screen; with MARIN_SCREENSHOTS a picture of it is kept in that folder."""
    tab.wait_for_load_state("networkidle")  # with its style sheet
    wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{tab.url} is {wide} px wider than the screen"
    assert "Not shown" not in tab.inner_text("main"), tab.inner_text("main")
    if folder := os.environ.get("MARIN_SCREENSHOTS"):
        width = tab.viewport_size["width"]
        tab.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)


def open_output(tab: Any, server: str, name: str) -> None:
    """Click from the first page to an output."""
    tab.goto(server)
    for part in name.split("/"):
        tab.get_by_role("link", name=re.compile(rf"^{part}(-abc123)?$")).first.click()
    tab.get_by_role("heading", name=name).wait_for()


def test_a_rejected_document_is_reached_by_clicks_with_its_reason(tab: Any, server: str) -> None:
    open_output(tab, server, "selected/topics")
    look(tab, "consolidation")
    tab.get_by_role("link", name=".marin/rejected/part-0.jsonl.zst").click()
    look(tab, "rejected")
    tab.get_by_role("link", name="Open row 0", exact=True).click()
    look(tab, "rejected-row")
    tab.get_by_role("link", name="The way of this document").click()
    look(tab, "way")
    rows = {row.split("\t")[0].split("\n")[0].strip(): row for row in tab.locator("tr[data-row]").all_inner_texts()}
    assert "rejected: low, value 0.25" in rows[QUALITY]
    assert "rejected by quality: low, value 0.25, in the sample of the rejected" in rows["selected/topics"]
    tab.get_by_role("row", name="documents/topics").get_by_role("link", name=re.compile("^row")).click()
    assert tab.locator("h1").inner_text().partition(": ")[2] in BAD


def test_a_rejected_document_is_reached_by_keys_alone(tab: Any, server: str) -> None:
    tab.goto(f"{server}/output?path=selected/topics-abc123")
    press_until(tab, "j", lambda: "rejected/part-0" in focused(tab))
    open_focused(tab)
    tab.keyboard.press("j")
    open_focused(tab)
    press_until(tab, "Tab", lambda: focused(tab) == "The way of this document")
    open_focused(tab)
    assert "rejected by quality: low" in tab.inner_text("main")


def test_what_a_model_was_trained_on_at_step_100_is_reached_by_clicks(tab: Any, server: str) -> None:
    open_output(tab, server, "models/topics")
    look(tab, "training")
    tab.get_by_label("Step").fill("100")
    tab.get_by_role("button", name="See what it was trained on").click()
    tab.get_by_role("heading", name="What step 100 was trained on").wait_for()
    look(tab, "batch")
    assert tab.get_by_role("heading", name=re.compile("^Sequence")).count() == 8
    tab.get_by_role("link", name="the whole sequence").first.click()
    look(tab, "sequence")
    document = tab.locator("h3 a").first
    name = document.inner_text()
    document.click()
    look(tab, "way-of-trained")
    assert name not in BAD
    assert "tokens" in tab.inner_text("main")


def test_the_next_step_and_a_sequence_are_reached_by_keys(tab: Any, server: str) -> None:
    tab.goto(f"{server}/batch?path=models/topics-abc123&step=100")
    with tab.expect_navigation():
        tab.keyboard.press("n")
    assert "What step 101 was trained on" in tab.inner_text("h1")
    press_until(tab, "j", lambda: focused(tab) == "the whole sequence")
    open_focused(tab)
    assert "Sequence 0 of the batch of 16" in tab.inner_text("main")


def focused(tab: Any) -> str:
    return str(tab.evaluate("document.activeElement.innerText")).strip()


def press_until(tab: Any, key: str, is_there: Any) -> None:
    for _ in range(60):
        tab.keyboard.press(key)
        if is_there():
            return
    raise AssertionError(f"{key} leads to {focused(tab)!r}, and not there: {tab.url}")


def open_focused(tab: Any) -> None:
    with tab.expect_navigation():
        tab.keyboard.press("Enter")
