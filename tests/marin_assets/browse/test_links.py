"""Dagster's page of an asset leads to its data in the browser; that page leads back, to the record and to the log."""

from __future__ import annotations

import html
import re
from pathlib import Path

import dagster as dg
import pytest
import toy_steps
from browser_server import Answer, Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets import Step
from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_assets.browse.links import link_of_output, shown_prefixes
from marin_assets.plan.record_facts.facts import describe_node
from marin_assets.step.graph import build_graph
from marin_resources.configuration.data_browser import browser_address, further_prefixes
from marin_resources.configuration.settings import SettingError
from marin_resources.orchestrator.produce import Produced
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.files import read_json, write_bytes, write_json
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output
from marin_resources.types.record import Record

BROWSER, UI = "https://browse.example.org", "https://marin.example.org/"
ROWS = {"part-0.jsonl": [{"id": "a", "text": "A row."}]}


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a deployment with a UI and a data browser."""
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "outputs"))
    monkeypatch.setenv("MARIN_BROWSE_URL", BROWSER)
    monkeypatch.setenv("MARIN_UI_URL", UI)
    return str(tmp_path / "outputs")


def shown_link(path: str) -> str | None:
    """The link of the metadata of a materialization."""
    link = materialization_metadata(Produced(observed=Observed(path=path), reused=True)).get("browse")
    assert link is None or isinstance(link, dg.UrlMetadataValue)
    return None if link is None else link.value


def opened(browser: Browser, link: str | None) -> Answer:
    assert link is not None
    assert link.startswith(BROWSER)
    return browser.send("GET", link.removeprefix(BROWSER))


def record_of(path: str, **fields: object) -> None:
    file = join(path, ".executor_info")
    write_json(file, {**read_json(file), **fields})


NAMED = [
    Output(name="raw/a=1,lr=3e-4", version="abc123", identity="x"),
    Output(name="documents/web", version="abc123", identity="x", partition="2026-01/β=1,2?&#%+ "),
    Output(name="documents/web", version="abc123", identity="x", override="my/own place"),
]


@pytest.mark.parametrize("output", NAMED, ids=["name", "partition", "override"])
def test_the_link_of_an_asset_opens_its_output(prefix: str, output: Output) -> None:
    path = join(prefix, output.relative())
    stored = join(prefix, store_output(prefix, "stored", ROWS))
    Path(path).parent.mkdir(parents=True)
    Path(stored).rename(path)
    record_of(path, name=output.name)
    with browsing(*shown_prefixes(store_at(prefix))) as browser:
        page = opened(browser, shown_link(path))
    assert page.status == 200
    assert output.name in page.text
    assert "part-0.jsonl" in page.text


def test_an_output_of_a_bucket_has_its_whole_path_in_the_link(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_PREFIX", "gs://bucket/outputs")
    path = "gs://bucket/outputs/raw/a=1-abc123"
    assert link_of_output(path) == f"{BROWSER}/output?path=gs%3A%2F%2Fbucket%2Foutputs%2Fraw%2Fa%3D1-abc123"
    assert link_of_output("gs://bucket/outputs-of-others/raw/a-abc123") is None


def test_without_an_address_and_outside_of_what_is_shown_there_is_no_link(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = str(tmp_path / "elsewhere/documents-abc123")
    assert shown_link(elsewhere) is None
    monkeypatch.setenv("MARIN_BROWSE_PREFIXES", f"gs://other/x,{tmp_path}/elsewhere")
    assert further_prefixes() == ("gs://other/x", f"{tmp_path}/elsewhere")
    assert shown_link(elsewhere) is not None
    monkeypatch.delenv("MARIN_BROWSE_URL")
    assert shown_link(elsewhere) is None


def links_of(page: Answer) -> dict[str, str]:
    return {
        text: html.unescape(link) for link, text in re.findall(r'<li><a href="([^"]+)"[^>]*>([^<]+)</a>', page.html)
    }


def test_the_page_of_an_output_leads_to_its_asset_record_and_log(prefix: str) -> None:
    path = join(prefix, store_output(prefix, "tokenized/web", ROWS))
    record_of(path, attempt=2)
    write_bytes(log_path(path, 2), b"x" * 400_000 + b"\nThe last line.\n")
    with browsing(prefix) as browser:
        links = links_of(browser.get("output", path="tokenized/web-abc123"))
        assert links["the asset in Dagster"] == "https://marin.example.org/assets/web/tokenized"
        assert '"tokenized/web"' in browser.send("GET", links["its record"]).text
        assert "The last line." in browser.send("GET", links["its log"]).text, "a long log opens at its end"


@pytest.mark.parametrize(
    ("fields", "page"),
    [
        ({"name": "checkpoints/sweep/lr=3e-4"}, "sweep/checkpoints/lr%3D3e-4"),
        ({"name": "raw/web", "asset_key": ["crawl", "a b/c"]}, "crawl/a%20b%2Fc"),
        ({"name": "raw/web", "partition": "2026-01/β&x"}, "web/raw?view=partitions&partition=2026-01%2F%CE%B2%26x"),
    ],
    ids=["name", "a key of its own", "partition"],
)
def test_the_link_back_is_that_of_the_assets_key(prefix: str, fields: dict[str, object], page: str) -> None:
    record_of(join(prefix, store_output(prefix, "stored", ROWS)), **fields)
    with browsing(prefix) as browser:
        links = links_of(browser.get("output", path="stored-abc123"))
    assert links["the asset in Dagster"] == f"https://marin.example.org/assets/{page}"


def test_a_failed_output_leads_to_the_log_of_its_latest_attempt(prefix: str) -> None:
    path = join(prefix, store_output(prefix, "stored", {}, status="FAILED"))
    for attempt in (1, 2):
        write_json(join(path, f".marin/attempts/{attempt}.json"), {"format_version": 1})
        write_bytes(log_path(path, attempt), f"Attempt {attempt}.".encode())
    record_of(path, attempt=1)
    with browsing(prefix) as browser:
        links = links_of(browser.get("output", path="stored-abc123"))
        assert "Attempt 2." in browser.send("GET", links["its log"]).text


def test_what_an_output_lacks_has_no_link(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = join(prefix, store_output(prefix, "stored", ROWS))
    monkeypatch.delenv("MARIN_UI_URL")
    with browsing(prefix) as browser:
        assert set(links_of(browser.get("output", path="stored-abc123"))) == {"its record"}
        for damage in (b"{", b'{"format_version": 1, "asset_key": [1]}', b'{"format_version": 1, "partition": [1]}'):
            write_bytes(join(path, ".executor_info"), damage)
            assert browser.get("output", path="stored-abc123").status == 200
        Path(path, ".executor_info").unlink()
        assert links_of(browser.get("output", path="stored-abc123")) == {}


@pytest.mark.parametrize("value", ["https://example.org/data", "https://x.org?a=1", "https://me:pw@x.org"])
def test_an_address_that_is_not_a_host_name_alone_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MARIN_BROWSE_URL", value)
    with pytest.raises(SettingError, match="expected a scheme and a host name alone"):
        browser_address()


def test_a_prefix_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_BROWSE_PREFIXES", "gs://bucket/x,nowhere://y")
    with pytest.raises(SettingError, match=r"MARIN_BROWSE_PREFIXES is .* unknown scheme 'nowhere'"):
        further_prefixes()


@pytest.mark.long
def test_a_step_with_a_key_of_its_own_has_it_in_its_record_and_no_other_step_has(prefix: str) -> None:
    steps = [
        Step(name="raw/web", key=("crawl", "pages"), fn=toy_steps.make, config=toy_steps.ToyConfig()),
        Step(name="raw/other", fn=toy_steps.make, config=toy_steps.ToyConfig()),
    ]
    records = [Record.from_dict(describe_node(node, Store(prefix), {}, {}, None)) for node in build_graph(steps).nodes]
    assert {record.name: list(record.asset_key) for record in records} == {
        "raw/web": ["crawl", "pages"],
        "raw/other": [],
    }
