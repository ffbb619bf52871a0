"""Documents are scored by a function that its name finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import scorers_for_tests
from shard_files import data_of, write_shards

from marin_assets.documents import Document, list_shards, read_rows
from marin_assets.documents.attributes import read_attributes
from marin_assets.stages.quality.score_by_function import ScoreByFunctionConfig, ScorerError, score_by_function
from marin_assets.step.values import unwrap_versioned_value, versioned
from marin_resources.ray_tpu.shards.map_shards import ShardError

DOCUMENTS = [Document(id=f"d{n}", text="owl " * n) for n in range(10)]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process, even if Ray runs for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def score(folder: Path, function: str, shards: int = 2, **fields: Any) -> dict[str, Any]:
    config = ScoreByFunctionConfig(
        documents_path=write_shards(folder / "documents", DOCUMENTS, shards),
        output_path=str(folder / "scores"),
        function=versioned(f"scorers_for_tests:{function}"),
        **fields,
    )
    return score_by_function(unwrap_versioned_value(config))


def rows(folder: Path) -> dict[str, Any]:
    return {row["id"]: row for path in list_shards(str(folder / "scores")) for _, row in read_rows(path)}  # type: ignore[index]


def test_each_document_has_the_number_of_the_function(tmp_path: Path) -> None:
    counts = score(tmp_path, "by_length", settings=versioned({"unit": 4}), at_least=versioned(5.0), batch=3)
    assert counts == {"documents": 10, "kept": 5, "rejected": 5, "rejected_low_score": 5}
    scores = {id: row["value"] for id, row in rows(tmp_path).items()}
    assert scores == {f"d{n}": float(n) for n in range(10)}
    assert rows(tmp_path)["d4"] == {"id": "d4", "keep": False, "reason": "low_score", "value": 4.0}
    assert max(scorers_for_tests.BATCHES) == 3


def test_without_a_threshold_all_are_kept(tmp_path: Path) -> None:
    assert score(tmp_path, "by_numpy") == {"documents": 10, "kept": 10, "rejected": 0}
    [path, _] = list_shards(str(tmp_path / "scores"))
    assert all(decision.value is not None for _, decision in read_attributes(path))


def test_shards_and_batches_change_no_score(tmp_path: Path) -> None:
    score(tmp_path / "one", "by_length", shards=1)
    score(tmp_path / "many", "by_length", shards=4, batch=1)
    assert rows(tmp_path / "one") == rows(tmp_path / "many")


def test_a_model_is_read_and_more_keys_are_written(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for weight in (2, 5):
        (model / "weights.json").write_text(json.dumps({"owl": weight}))
        score(tmp_path, "by_words_of_a_model", model_path=str(model))
        assert rows(tmp_path)["d3"] == {"id": "d3", "keep": True, "reason": "", "value": 3.0 * weight, "words": 3}
    assert len(data_of(tmp_path / "scores")) == 2, "another model scores again, over the scores of the first"


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("one_too_few", "returned 4 numbers for 5 texts, expected one for each"),
        ("not_a_number", "returned nan for document 'd0', expected a finite number"),
        ("with_a_reserved_key", "returned the key 'keep' for document 'd0'"),
        ("no_scorer", r"returned 0.5, expected a function of a list of texts"),
    ],
)
def test_what_is_no_number_for_each_text_is_refused(tmp_path: Path, function: str, sentence: str) -> None:
    with pytest.raises(ShardError, match=sentence):
        score(tmp_path, function)
    assert not list(tmp_path.glob("scores/*.zst"))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"function": "by_length"}, "function is 'by_length', expected 'module:function'"),
        ({"function": "scorers_for_tests:by_lenth"}, "which cannot be imported .*by_lenth"),
        ({"function": "no_such_module:score"}, "which cannot be imported .*no_such_module"),
        ({"function": "scorers_for_tests:NO_FUNCTION"}, "which is no function but 5"),
        ({"batch": 0}, "batch is 0, expected a whole number above 0"),
        ({"at_least": float("nan")}, "at_least is nan, expected a number"),
        ({"settings": {"model_path": "x"}}, "Pass it as model_path"),
    ],
)
def test_a_wrong_value_is_refused_before_a_document_is_read(fields: dict[str, Any], sentence: str) -> None:
    given = {"function": "scorers_for_tests:by_length", "documents_path": "/none", "output_path": "/none", **fields}
    with pytest.raises(ScorerError, match=sentence):
        score_by_function(unwrap_versioned_value(ScoreByFunctionConfig(**given)))
