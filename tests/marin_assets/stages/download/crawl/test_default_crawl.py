"""The steps of a crawl: what enters their versions, and that they run."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import documents_of
from warc_files import crawl_records, members, url_of

from marin_assets.defaults import default_captures, default_warc, default_wet
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError

LIST = "https://data.example.org/warc.paths.gz"


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def test_the_version_has_the_source_and_the_choice_and_not_the_server() -> None:
    plain = version_of(default_warc("crawl", LIST))
    assert version_of(default_warc("crawl", LIST, base_url="s3://copy")) == plain
    others = [
        default_warc("crawl", "/data/warc"),
        default_warc("crawl", LIST, max_files=10),
        default_warc("crawl", LIST, allow_cut_files=True),
        default_warc("crawl", LIST, max_damaged_fraction=0.1),
        default_wet("crawl", LIST),
        default_wet("crawl", LIST, languages=["spa"]),
        default_captures("crawl", "https://data.example.org/indexes"),
        default_captures("crawl", "https://data.example.org/indexes", domains=["example.org"]),
        default_captures("crawl", "https://data.example.org/indexes", urls=["https://example.org/*"]),
    ]
    assert len({plain, *map(version_of, others)}) == 1 + len(others)


def test_a_wrong_argument_is_refused_where_the_step_is_made() -> None:
    with pytest.raises(ConfigError, match="max_files"):
        default_warc("crawl", LIST, max_files="ten")  # type: ignore[arg-type]


def test_a_folder_of_warc_files_becomes_documents(tmp_path: Path) -> None:
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl/a.warc.gz").write_bytes(members(crawl_records(["abc", "glob"])))
    graph = build_graph([default_warc("mine", str(tmp_path / "crawl"))])
    nodes = {node.name: node for node in graph}
    assert list(nodes) == ["raw/mine", "documents/mine"]
    for node in nodes.values():
        config = resolve(node, graph, lambda output: str(tmp_path / output.relative()), "/p")
        result = node.step.fn(config)
        assert result["pages"] == 2
    documents = documents_of(config.output_path)
    assert {document.metadata["url"] for document in documents} == {url_of("abc"), url_of("glob")}
    assert {document.source for document in documents} == {"mine"}
