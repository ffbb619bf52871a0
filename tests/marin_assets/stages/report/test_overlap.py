"""Corpora compared by the questions of evaluations that occur in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import default_overlap
from marin_assets.documents import Document, write_documents
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.report.overlap import OverlapConfig, OverlapError, report_overlap
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json

LEAKED = "which of these seven rivers crosses the largest number of borders on its way to the northern sea"
SAFE = "how many of the old mills in the valley were still at work when the second bridge was opened again"
HOSTILE = (
    "<script>alert(1)</script> & “quoted” names of nine planets that are seen without a telescope at night in june"
)


@pytest.fixture
def evaluations(tmp_path: Path) -> dict[str, str]:
    paths = {}
    for name, texts in {"rivers": [LEAKED, SAFE], "planets": [HOSTILE]}.items():
        paths[name] = str(tmp_path / f"{name}.jsonl")
        Path(paths[name]).write_text("".join(json.dumps({"id": f"q{i}", "q": t}) + "\n" for i, t in enumerate(texts)))
    return paths


def search(folder: Path, corpus: str, texts: Sequence[str], evaluations: dict[str, str], **changes: Any) -> str:
    path = folder / corpus
    documents = [Document(id=f"{corpus}/{i}", text=text) for i, text in enumerate(texts)]
    write_documents(f"{path}/documents/a.jsonl.zst", documents)
    config = FindContaminationConfig(
        documents_path=f"{path}/documents", output_path=f"{path}/found", evaluations=evaluations,
        fields={name: ["q"] for name in evaluations}, **changes,
    )  # fmt: skip
    find_contamination(unwrap_versioned_value(config))
    return f"{path}/found"


def report(folder: Path, contaminations: dict[str, str], **changes: Any) -> dict[str, Any]:
    config = OverlapConfig(contaminations=contaminations, output_path=f"{folder}/report", **changes)
    return report_overlap(unwrap_versioned_value(config))


def test_each_corpus_has_its_share_of_each_evaluation_with_examples(
    tmp_path: Path, evaluations: dict[str, str]
) -> None:
    web = search(tmp_path, "web", [f"A page. {LEAKED.upper()}, and so on.", f"Some <b>bold</b> {HOSTILE}"], evaluations)
    books = search(tmp_path, "books", [f"Chapter 1. {LEAKED}", f"Chapter 2. {LEAKED}", "nothing"], evaluations)
    result = report(tmp_path, {"web": web, "books": books})
    assert result == {
        "corpora": 2, "evaluations": 2, "questions": 3, "questions_contaminated_web": 2,
        "contaminated_share_web": 2 / 3, "questions_contaminated_books": 1, "contaminated_share_books": 1 / 3,
    }  # fmt: skip
    numbers = read_json(str(tmp_path / "report/overlap.json"))["evaluations"]
    assert numbers["planets"]["books"]["questions_contaminated"] == 0
    assert numbers["rivers"]["books"] == {"questions": 2, "questions_contaminated": 1, "contaminated_share": 0.5}
    page = (tmp_path / "report/overlap.html").read_text()
    assert "in books: 1 question<" in page
    assert "1 or more n-grams of 13 words.</p>" in page
    assert "100% of its n-grams in books/0; in 2 documents" in page
    assert f"… a page <mark>{' '.join(LEAKED.split()[:13])}</mark> {' '.join(LEAKED.split()[13:])} and so on …" in page
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "http" not in page


def test_few_examples_are_those_with_the_largest_share(tmp_path: Path, evaluations: dict[str, str]) -> None:
    part = " ".join(SAFE.split()[:14])
    path = search(tmp_path, "web", [LEAKED, part], evaluations)
    report(tmp_path, {"web": path}, examples=1)
    page = (tmp_path / "report/overlap.html").read_text()
    assert "in web: 2 questions" in page
    assert "<b>q0</b>" in page
    assert "<b>q1</b>" not in page


def test_corpora_that_were_searched_otherwise_are_refused(tmp_path: Path, evaluations: dict[str, str]) -> None:
    web = search(tmp_path, "web", [LEAKED], evaluations)
    other_rule = search(tmp_path, "rule", [LEAKED], evaluations, ngram=10)
    fewer = search(tmp_path, "fewer", [LEAKED], {"rivers": evaluations["rivers"]})
    for contaminations, sentence in (
        ({"web": web, "books": other_rule}, "Search both with one rule."),
        ({"web": web, "books": fewer}, "The corpus 'books' was searched for {'rivers': 2}, and 'web' for"),
        ({"web": str(tmp_path / "web/documents")}, "contamination.json' does not exist, for the corpus 'web'."),
        ({}, "contaminations is empty"),
    ):
        with pytest.raises(OverlapError, match=r"\A.*\Z") as caught:
            report(tmp_path, contaminations)
        assert sentence in str(caught.value)


def test_the_default_searches_each_corpus_by_a_step_of_its_own(tmp_path: Path, evaluations: dict[str, str]) -> None:
    def versions(**changes: Any) -> dict[str, str]:
        corpora = {"web": "/corpora/web", "books": "/corpora/books"}
        step = default_overlap("all", corpora, evaluations, fields={name: ["q"] for name in evaluations}, **changes)
        return {node.step.name: node.version.path for node in build_graph([step])}

    plain = versions()
    assert plain.keys() == {"overlap/all", "overlap/all/web", "overlap/all/books"}
    fewer = versions(examples=3)
    assert {name for name in plain if plain[name] != fewer[name]} == {"overlap/all"}
    assert all(plain[name] != path for name, path in versions(ngram=10).items())
