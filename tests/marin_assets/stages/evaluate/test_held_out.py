from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.documents.position import VALIDATION, split_of
from marin_assets.stages.evaluate.held_out import HeldOutConfig, HeldOutError, make_held_out_set
from marin_assets.step.values import unwrap_versioned_value

FRACTION = 0.6


def make(documents_path: str, output_path: Path, **fields: Any) -> dict[str, Any]:
    config = HeldOutConfig(
        documents_path=documents_path, output_path=str(output_path), **{"validation_fraction": FRACTION, **fields}
    )
    return make_held_out_set(unwrap_versioned_value(config))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def held_out(documents_path: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("held_out")
    return path, make(documents_path, path)


def test_the_result_counts_what_was_written(held_out: tuple[Path, dict[str, Any]], corpus: list[Document]) -> None:
    path, result = held_out
    questions, texts = read(path / "questions.jsonl"), read(path / "texts.jsonl")
    assert result["questions"] == len(questions) == 500
    assert result["texts"] == len(texts) == result["documents_held_out"]
    assert result["documents"] == len(corpus)
    assert result["bytes"] == sum(len(text["text"].encode()) for text in texts)
    assert result["pages"] == len({text["page"] for text in texts})


def test_every_text_is_held_out_and_every_held_out_document_is_there(
    held_out: tuple[Path, dict[str, Any]], corpus: list[Document]
) -> None:
    texts = {(row["id"], row["text"]) for row in read(held_out[0] / "texts.jsonl")}
    assert texts == {(d.id, d.text) for d in corpus if split_of(d, FRACTION) == VALIDATION}


def test_the_true_choice_continues_the_context_and_the_others_are_from_other_pages(
    held_out: tuple[Path, dict[str, Any]],
) -> None:
    pages: dict[str, str] = {}
    for row in read(held_out[0] / "texts.jsonl"):
        pages[row["page"]] = pages.get(row["page"], "") + "\0" + row["text"]
    for question in read(held_out[0] / "questions.jsonl"):
        true = question["choices"][question["gold"]]
        assert f"{question['ctx']} {true}" in pages[question["page"]]
        for other in question["choices"]:
            assert other == true or any(other in text for page, text in pages.items() if page != question["page"])


def test_questions_have_the_given_lengths_and_four_different_choices(held_out: tuple[Path, dict[str, Any]]) -> None:
    for question in read(held_out[0] / "questions.jsonl"):
        assert 260 <= len(question["ctx"]) <= 300
        assert all(88 <= len(choice) <= 130 for choice in question["choices"])
        assert len(set(question["choices"])) == 4


def test_the_true_choice_is_in_every_place_equally_often(held_out: tuple[Path, dict[str, Any]]) -> None:
    places = [question["gold"] for question in read(held_out[0] / "questions.jsonl")]
    assert all(90 <= places.count(place) <= 160 for place in range(4))


def test_the_same_documents_in_other_shards_and_another_order_are_the_same_bytes(
    held_out: tuple[Path, dict[str, Any]], corpus: list[Document], tmp_path: Path
) -> None:
    for index in range(5):
        write_documents(str(tmp_path / "documents" / shard_name(index, 5)), reversed(corpus[index::5]))
    make(str(tmp_path / "documents"), tmp_path / "out")
    for name in ("questions.jsonl", "texts.jsonl"):
        assert (tmp_path / "out" / name).read_bytes() == (held_out[0] / name).read_bytes()


def test_another_seed_gives_other_questions(
    held_out: tuple[Path, dict[str, Any]], documents_path: str, tmp_path: Path
) -> None:
    make(documents_path, tmp_path, seed=1)
    assert read(tmp_path / "questions.jsonl") != read(held_out[0] / "questions.jsonl")


def test_at_most_max_documents_are_sampled(documents_path: str, tmp_path: Path) -> None:
    assert make(documents_path, tmp_path, max_documents=30, questions=20)["texts"] == 30


def test_too_few_held_out_documents_are_an_error(documents_path: str, tmp_path: Path) -> None:
    with pytest.raises(
        HeldOutError, match=r"give \d+ questions, expected 50000. Raise validation_fraction \(now 0.6\)"
    ):
        make(documents_path, tmp_path, questions=50_000)
    with pytest.raises(HeldOutError, match=r"The 0 held-out documents .* give 0 questions, expected 500"):
        make(documents_path, tmp_path / "none", validation_fraction=0.0)
