"""The steps of a dump: what enters their versions, and that they run."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import documents_of
from wiki_dumps import article, dump_of
from wiki_xml import page, xml_of

from marin_assets.defaults import default_wikipedia, default_wikipedia_xml
from marin_assets.stages.transform.html.wiki_content import WikiContent
from marin_assets.stages.transform.wikitext.content import WikitextContent
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, versioned

DUMP = "https://dumps.example.org/enwiki-NS0-20240520-ENTERPRISE-HTML.json.tar.gz"


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def test_the_version_has_the_source_and_the_content_and_not_the_server() -> None:
    plain = version_of(default_wikipedia("wiki", DUMP))
    assert version_of(default_wikipedia("wiki", DUMP, base_url="s3://copy")) == plain
    others = [
        default_wikipedia("wiki", "/data/dumps"),
        default_wikipedia("wiki", DUMP, allow_cut_files=True),
        default_wikipedia("wiki", DUMP, max_damaged_fraction=0.1),
        default_wikipedia("wiki", DUMP, content=WikiContent(infobox=versioned("drop"))),
        default_wikipedia("wiki", DUMP, content=WikiContent(drop_sections=versioned({"en": ("References",)}))),
    ]
    assert len({plain, *map(version_of, others)}) == 1 + len(others)


def test_a_wrong_argument_is_refused_where_the_step_is_made() -> None:
    with pytest.raises(ConfigError, match="allow_cut_files"):
        default_wikipedia("wiki", DUMP, allow_cut_files="yes")  # type: ignore[arg-type]


def test_a_folder_of_dumps_becomes_documents(tmp_path: Path) -> None:
    (tmp_path / "dumps").mkdir()
    rows = [article(number, body=f"<p>{'Owls hunt at night. ' * 20}</p>") for number in (1, 2)]
    (tmp_path / "dumps/a.tar.gz").write_bytes(dump_of(rows))
    graph = build_graph([default_wikipedia("wiki", str(tmp_path / "dumps"))])
    nodes = {node.name: node for node in graph}
    assert list(nodes) == ["raw/wiki", "documents/wiki"]
    for node in nodes.values():
        config = resolve(node, graph, lambda output: str(tmp_path / output.relative()), "/p")
        assert node.step.fn(config)["pages"] == 2
    documents = documents_of(config.output_path)
    assert [document.id for document in documents] == ["enwiki/1", "enwiki/2"]
    assert documents[0].text.startswith("# Article 1\n\nOwls hunt")


def test_a_dump_in_xml_becomes_documents_with_the_same_ids(tmp_path: Path) -> None:
    plain = version_of(default_wikipedia_xml("wiki", DUMP))
    assert version_of(default_wikipedia_xml("wiki", DUMP, base_url="s3://copy", checksums_path="/sums")) == plain
    fewer = WikitextContent(keep_tables=versioned(False))
    assert version_of(default_wikipedia_xml("wiki", DUMP, content=fewer)) != plain
    (tmp_path / "dumps").mkdir()
    pages = [page(number, "[[Owl]]s hunt at night. " * 20) for number in (1, 2)]
    (tmp_path / "dumps/a.xml").write_text(xml_of(pages))
    graph = build_graph([default_wikipedia_xml("wiki", str(tmp_path / "dumps"))])
    for node in graph:
        config = resolve(node, graph, lambda output: str(tmp_path / output.relative()), "/p")
        assert node.step.fn(config)["pages"] == 2
    documents = documents_of(config.output_path)
    assert [document.id for document in documents] == ["enwiki/1", "enwiki/2"]
    assert documents[0].text.startswith("# Owl 1\n\nOwls hunt")
