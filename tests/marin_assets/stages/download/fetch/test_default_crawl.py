"""The steps of a crawl of one's own: what enters their versions, and that they run from pages to their yield."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from crawls import documents_of
from loopback_web import LoopbackWeb

from marin_assets.defaults import default_crawl
from marin_assets.documents import Document, write_documents
from marin_assets.stages.download.fetch.fetch_pages import FetchPagesError
from marin_assets.stages.filter.registry import named
from marin_assets.stages.report.crawl_yield import CrawlStage, CrawlYieldConfig, YieldError, crawl_yield
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, unwrap_versioned_value
from marin_resources.storage.files import read_json

CONTACT = "https://owls.example.org/bot"
SEEDS = ["https://owls.example.org/"]


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def made(**changes: Any) -> str:
    return version_of(default_crawl("owls", **{"contact": CONTACT, "seeds": SEEDS, **changes}).crawl_yield)


def test_the_version_has_the_addresses_the_contact_and_the_budget_and_not_the_speed() -> None:
    plain = made()
    assert made(delay_s=5.0, connections=2, allowed_networks=["127.0.0.0/8"], hosts={"a.example": "127.0.0.1"}) == plain
    others = [
        made(seeds=["https://mice.example.org/"]),
        made(seeds="/data/list.txt"),
        made(contact="bot@example.org"),
        made(agent="OwlBot"),
        made(max_pages=10),
        made(against={"books": "/data/books"}),
        made(filters=[named("gopher_repetition@reference")]),
        made(seeds=None, pages="/data/pages"),
        made(seeds=None, pages="/data/pages", seen={"old": "/data/list"}),
    ]
    assert len({plain, *others}) == 1 + len(others)


def test_a_wrong_argument_is_refused_where_the_steps_are_made() -> None:
    with pytest.raises(ConfigError, match="expected one of them"):
        made(pages="/data/pages")
    with pytest.raises(FetchPagesError, match="Step 'crawls/owls': contact is 'nobody'"):
        made(contact="nobody")
    with pytest.raises(TypeError):
        default_crawl("owls", seeds=SEEDS)  # type: ignore[call-arg]


def test_pages_become_links_and_a_crawl_and_documents_with_their_yield(web: LoopbackWeb, tmp_path: Path) -> None:
    links = "".join(f'<a href="{web.url(name, path)}">x</a>' for name in web.names[:4] for path in ("p0", "p1", "gone"))
    known = "h01.example p0 has owls that hunt at night. " * 8
    write_documents(f"{tmp_path}/pages/a.jsonl.zst", [Document(id="a", text=links, metadata={"url": SEEDS[0]})])
    write_documents(f"{tmp_path}/known/a.jsonl.zst", [Document(id="k", text=known)])
    crawl = default_crawl(
        "owls", contact=CONTACT, pages=f"{tmp_path}/pages", against={"books": f"{tmp_path}/known"}, agent="OwlBot",
        delay_s=0.05, connections=4, allowed_networks=["127.0.0.0/8"], hosts=web.hosts,
        filters=[named("gopher_repetition@reference")],
    )  # fmt: skip
    graph = build_graph([crawl.crawl_yield])
    results = {}
    for node in graph:
        config = resolve(node, graph, lambda output: str(tmp_path / output.relative()), "/p")
        results[node.name] = node.step.fn(config)
    assert results["outlinks/owls"]["outlinks"] == 12
    assert (results["crawls/owls"]["fetched"], results["crawls/owls"]["outcome_status"]) == (8, 4)
    assert results["clusters/owls"]["duplicates_against"] >= 1
    counted = results["yields/owls"]
    assert [counted[f"pages_{name}"] for name in ("pages", "main_content")] == [8, 8]
    assert counted["pages_unique"] == results["unique/owls"]["kept"] < 8
    assert counted["pages_kept"] == results["crawled/owls"]["kept"]
    assert counted["share_unique"] == counted["pages_unique"] / 8
    stored = read_json(f"{config.output_path}/yield.json")
    assert stored["outcomes"] == {"fetched": 8, "status": 4}
    assert "| main_content | 8 | 100.0% | 100.0% |" in Path(f"{config.output_path}/yield.md").read_text()
    raw = CrawlStage(name="raw", documents_path=config.stages[0].documents_path)
    fewer = CrawlStage(name="fewer", documents_path=config.stages[2].documents_path)
    wrong = CrawlYieldConfig(outcomes_path=config.outcomes_path, stages=[fewer, raw], output_path=f"{tmp_path}/wrong")
    with pytest.raises(YieldError, match="'raw' has 8 pages"):
        crawl_yield(unwrap_versioned_value(wrong))
    twice = dataclasses.replace(wrong, stages=[CrawlStage(name="kept", documents_path=str(tmp_path))] * 2)
    with pytest.raises(YieldError, match="stages has two with the name 'kept', expected one of each"):
        crawl_yield(unwrap_versioned_value(twice))
    assert all(page.metadata["url"] for page in documents_of(config.stages[0].documents_path))
