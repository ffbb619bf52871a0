"""Labels by what a model has answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, read_documents, shard_name, write_documents
from marin_assets.stages.generate.label_by_answers import LabelByAnswersConfig, LabelError, label_by_answers
from marin_assets.stages.generate.rating import rating_of
from marin_assets.step.values import unwrap_versioned_value, versioned

ANSWERS = ["Score: 4", "2", "0 to 5: 5", "none", "7", "Score 3.", "2 or 3"]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    documents = [Document(id=f"d{i}", text=f"text {i}", source="web", metadata={"page": "p"}) for i in range(7)]
    answers = [Document(id=f"d{i}", text=answer) for i, answer in enumerate(ANSWERS)]
    for name, rows in (("documents", documents), ("answers", answers)):
        for i in range(2):
            write_documents(str(tmp_path / name / shard_name(i, 2)), rows[i::2])
    return str(tmp_path / "documents"), str(tmp_path / "answers")


def label(folders: tuple[str, str], output: Path, **fields: Any) -> dict[str, Any]:
    config = LabelByAnswersConfig(documents_path=folders[0], answers_path=folders[1], output_path=str(output), **fields)
    return label_by_answers(unwrap_versioned_value(config))


def labelled(output: Path, name: str) -> dict[str, int]:
    found = [one for path in sorted((output / name).iterdir()) for one in read_documents(str(path))]
    assert all(one.source == "web" and one.metadata["page"] == "p" for one in found)
    return {one.id: one.metadata["score"] for one in found}


def test_scores_within_the_bounds_label_and_the_others_are_counted(folders: tuple[str, str], tmp_path: Path) -> None:
    result = label(folders, tmp_path / "out")
    assert labelled(tmp_path / "out", "positive") == {"d0": 4, "d2": 5, "d5": 3}
    assert labelled(tmp_path / "out", "negative") == {"d1": 2}
    assert (result["documents"], result["positive"], result["negative"], result["unreadable"]) == (7, 3, 1, 3)
    assert result["unreadable_share"] == pytest.approx(3 / 7)
    assert result["score_mean"] == pytest.approx((4 + 2 + 5 + 3) / 4)
    assert result["scores"]["5"] == {"documents": 1}
    reasons = {name: count for name, count in result.items() if name.startswith("unreadable_") and "share" not in name}
    assert reasons == {"unreadable_no_number": 1, "unreadable_off_the_scale": 1, "unreadable_several_numbers": 1}


def test_a_pattern_reads_scores_of_another_form(folders: tuple[str, str], tmp_path: Path) -> None:
    result = label(folders, tmp_path / "out", pattern=versioned(r"(\d)$"))
    assert labelled(tmp_path / "out", "positive") == {"d0": 4, "d2": 5, "d6": 3}
    assert (result["negative"], result["unreadable"]) == (1, 3)


@pytest.mark.parametrize(
    ("answer", "rating"),
    [
        *(
            (answer, 4)
            for answer in ("4", " 4.\n", "Score: 4", "Educational score: **4**", "4/5", "4 out of 5", "4 of 5")
        ),
        *(
            (answer, 4)
            for answer in ("0 to 5: 4", "(0-5) 4", "On a scale of 0 to 5, I rate this a 4.", "4.0", "4 points")
        ),
        *((answer, 4) for answer in ("Score: 2 for style.\nScore: 4", "It is from 2024. Rating: 4/5", "score = 4")),
        *(("5/5", 5), ("5 of 5", 5), ("0/5", 0), ("The score is 3, because of 2 errors.", 3)),
        *((answer, "no_number") for answer in ("", "none", "²", "50%", "v2a")),
        *((answer, "several_numbers") for answer in ("2 or 3", "It has 2 lists and 3 pages", "1, 2, 3")),
        *(("3.5", "not_whole"), ("Score: 2,5", "not_whole"), ("7", "off_the_scale"), ("Score: -1", "off_the_scale")),
    ],
)
def test_a_rating_is_read_as_the_rubric_states_it(answer: str, rating: int | str) -> None:
    assert rating_of(answer, 0, 5) == rating


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"max_unreadable": 0.4}, "3 of 7 answers have no score between 0 and 5; expected at most 40% of them"),
        ({"max_unreadable": 0.4, "pattern": r"(\d)$"}, "3 of 7 answers have no score that '(\\\\d)$' finds, between 0"),
        ({"pattern": r"\d+"}, "has no group, expected one around the score"),
        ({"pattern": "("}, "is no regular expression"),
        ({"positive_from": 6}, "positive_from is 6, expected a score above 0 and up to 5"),
        ({"positive_from": 1, "lowest": 0}, "No document is negative: the scores are"),
    ],
)
def test_answers_that_give_no_labels_are_a_sentence(
    folders: tuple[str, str], tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(LabelError) as failed:
        label(folders, tmp_path / "out", **fields)
    assert sentence in str(failed.value)


def test_answers_to_other_documents_are_an_error(folders: tuple[str, str], tmp_path: Path) -> None:
    write_documents(str(Path(folders[1]) / shard_name(1, 2)), [Document(id="x", text="1")])
    with pytest.raises(Exception, match="has 'x' there, expected the answer about 'd1'"):
        label(folders, tmp_path / "out")


def test_an_answer_too_many_is_an_error(folders: tuple[str, str], tmp_path: Path) -> None:
    answers = [Document(id=f"d{i}", text="1") for i in (1, 3, 5, 7)]
    write_documents(str(Path(folders[1]) / shard_name(1, 2)), answers)
    with pytest.raises(Exception, match="has an answer about 'd7' after that about the last document"):
        label(folders, tmp_path / "out")
