"""The steps of PubMed and PMC: what enters their versions, and that they run."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import documents_of
from pubmed_files import Write, archive_of, article, citation, pubmed_of

from marin_assets.defaults import default_pmc, default_pubmed
from marin_assets.stages.transform.jats.jats_content import JatsContent, JatsContentError
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, versioned

LIST = "https://data.example.org/all.paths"


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def test_the_versions_have_the_source_and_the_content_and_not_the_server() -> None:
    for default in (default_pubmed, default_pmc):
        plain = version_of(default("owls", LIST))
        assert version_of(default("owls", LIST, base_url="s3://copy")) == plain
        others = [
            default("owls", "/data/files"),
            default("owls", LIST, allow_cut_files=True),
            default("owls", LIST, max_damaged_fraction=0.1),
        ]
        assert len({plain, *map(version_of, others)}) == 1 + len(others)
    plain = version_of(default_pmc("owls", LIST))
    assert version_of(default_pmc("owls", LIST, content=JatsContent(citations=versioned("keep")))) != plain
    assert version_of(default_pubmed("owls", LIST, labels=False)) != version_of(default_pubmed("owls", LIST))


def test_a_wrong_argument_is_refused_where_the_step_is_made() -> None:
    with pytest.raises(ConfigError, match="allow_cut_files"):
        default_pubmed("owls", LIST, allow_cut_files="yes")  # type: ignore[arg-type]
    with pytest.raises(JatsContentError, match=r"Step 'documents/owls': jats\.citations is 'dorp'"):
        default_pmc("owls", LIST, content=JatsContent(citations="dorp"))


def test_folders_of_files_become_documents(tmp_path: Path, write: Write) -> None:
    pubmed = write({"pubmed25n0001.xml.gz": pubmed_of(citation(1), citation(2))}, "pubmed")
    pmc = write({"oa_comm_xml.incr.2024-06-19.tar.gz": archive_of({"PMC7.xml": article(7)})}, "pmc")
    graph = build_graph([default_pubmed("abstracts", str(pubmed)), default_pmc("articles", str(pmc))])
    outputs = {}
    for node in graph:
        config = resolve(node, graph, lambda output: str(tmp_path / output.relative()), "/p")
        node.step.fn(config)
        outputs[node.name] = config.output_path
    assert set(outputs) == {"documents/abstracts", "raw/articles", "documents/articles"}
    assert [document.id for document in documents_of(outputs["documents/abstracts"])] == ["PMID1", "PMID2"]
    (document,) = documents_of(outputs["documents/articles"])
    assert (document.id, document.source) == ("PMC7", "oa_comm")
    assert document.text.startswith("# On owls\n\nOwls hunt at night")
