"""The steps of ar5iv's papers: what enters their versions, and that they run."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import documents_of
from latexml_papers import page_of, write_archive

from marin_assets.defaults import default_ar5iv
from marin_assets.stages.transform.latexml.latexml_content import LatexmlContent, LatexmlContentError
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, versioned

ARCHIVE = "https://data.example.org/ar5iv-04-2024-no-problem.zip"


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def test_the_version_has_the_source_and_the_content_and_not_the_server() -> None:
    plain = version_of(default_ar5iv("ar5iv", ARCHIVE))
    assert version_of(default_ar5iv("ar5iv", ARCHIVE, base_url="s3://copy")) == plain
    others = [
        default_ar5iv("ar5iv", "/data/ar5iv"),
        default_ar5iv("ar5iv", ARCHIVE, max_damaged_fraction=0.1),
        default_ar5iv("ar5iv", ARCHIVE, content=LatexmlContent(drop=versioned(("authors",)))),
        default_ar5iv("ar5iv", ARCHIVE, content=LatexmlContent(before_first_section=versioned("drop"))),
    ]
    assert len({plain, *map(version_of, others)}) == 1 + len(others)


def test_a_wrong_argument_is_refused_where_the_step_is_made() -> None:
    with pytest.raises(ConfigError, match="max_damaged_fraction"):
        default_ar5iv("ar5iv", ARCHIVE, max_damaged_fraction="few")  # type: ignore[arg-type]
    with pytest.raises(LatexmlContentError, match=r"latexml\.drop has 'footnote'"):
        default_ar5iv("ar5iv", ARCHIVE, content=LatexmlContent(drop=versioned(("footnote",))))


def test_a_folder_of_archives_becomes_documents(tmp_path: Path) -> None:
    members = {"2105/2105.00001.html": page_of("flight"), "2105/2105.00002.html": page_of("displays")}
    write_archive(tmp_path / "zip/ar5iv-04-2024-warning.zip", members)
    graph = build_graph([default_ar5iv("ar5iv", str(tmp_path / "zip"))])
    nodes = {node.name: node for node in graph}
    assert list(nodes) == ["raw/ar5iv", "documents/ar5iv"]
    for node in nodes.values():
        config = resolve(node, graph, lambda output: str(tmp_path / output.relative()), "/p")
        assert node.step.fn(config)["pages"] == 2
    documents = documents_of(config.output_path)
    assert [document.id for document in documents] == ["2105.00001", "2105.00002"]
    assert documents[0].text.startswith("# On the Flight of Owls in")
    assert documents[0].metadata["set"] == "warning"
