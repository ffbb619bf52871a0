"""The same examples give the same bytes of a classifier, and its accuracy is measured on held-out pages."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from shard_files import data_of, write_shards

from marin_assets.documents import Document
from marin_assets.inference.fasttext_model import ClassifierError, find_model, load_classifier, one_line
from marin_assets.stages.quality.sample import SampleConfig, Smallest, TrainingError, sampled_examples
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json


def train(folder: Path, positive: list[Document], negative: list[Document], **changes: Any) -> dict[str, Any]:
    shards = changes.pop("shards", 2)
    examples = {
        "positive": write_shards(folder / "positive", positive, shards),
        "negative": write_shards(folder / "negative", negative, shards),
    }
    small = {"validation_fraction": 0.2, "bucket": 5000, "dim": 8}
    config = TrainFastTextConfig(examples=examples, output_path=f"{folder}/model", **{**small, **changes})
    return train_fasttext(unwrap_versioned_value(config))


def test_prose_is_distinguished_from_names(tmp_path: Path, prose: list[Document], names: list[Document]) -> None:
    result = train(tmp_path, prose, names)
    assert result["accuracy_lower95"] > max(0.95, result["majority_share"])
    assert result["recall_positive"] > 0.95
    assert result["recall_negative"] > 0.8
    assert result["examples"] == result["train_examples"] + result["validation_examples"]
    assert result["examples"] == result["examples_positive"] + result["examples_negative"]
    assert result["documents"] == len(prose) + len(names) >= result["examples"]
    assert read_json(f"{tmp_path}/model/metrics.json") == result
    classifier = load_classifier(f"{tmp_path}/model", find_model(f"{tmp_path}/model")[1])
    assert classifier.labels == ("negative", "positive")
    assert classifier.score(prose[0].text, "positive") > 0.9 > 0.1 > classifier.score("A = int\nB = str", "positive")


def test_the_same_examples_are_the_same_bytes(
    where: str, tmp_path: Path, prose: list[Document], names: list[Document]
) -> None:
    """In any order, shards, parallelism, and for any previous contents of the memory."""
    shuffled = random.Random(0).sample(prose, len(prose))
    train(tmp_path / "a", prose, names)
    train(tmp_path / "b", prose, names)
    train(tmp_path / "c", shuffled, names[::-1], shards=3)
    assert data_of(tmp_path / "a/model") == data_of(tmp_path / "b/model") == data_of(tmp_path / "c/model")
    train(tmp_path / "d", prose, names, seed=1)
    assert data_of(tmp_path / "a/model")["model.bin"] != data_of(tmp_path / "d/model")["model.bin"]


def test_no_page_and_no_text_is_on_both_sides(tmp_path: Path, prose: list[Document], names: list[Document]) -> None:
    copies = [dataclasses.replace(d, id=f"{d.id}-copy", metadata={"page": f"other-{i}"}) for i, d in enumerate(prose)]
    train(tmp_path, [*prose, *copies], names)
    folders = {label: f"{tmp_path}/{label}" for label in ("positive", "negative")}
    config = SampleConfig(max_examples=10**6, seed=0, lowercase=True)
    _, examples = sampled_examples(folders, f"{tmp_path}/sampled", config, 0.2)
    lines = [example.line for example in examples]
    assert len(lines) == len(set(lines)) < len(prose) + len(copies)
    assert not any(example.id.endswith("-copy") for example in examples)
    held_out = {example.id.rpartition("/")[0] for example in examples if example.held_out}
    assert held_out
    assert not held_out & {example.id.rpartition("/")[0] for example in examples if not example.held_out}


def test_a_text_with_two_labels_is_no_example(tmp_path: Path, prose: list[Document], names: list[Document]) -> None:
    alone, doubled = train(tmp_path / "a", prose, names), train(tmp_path / "b", prose, [*names, *prose[:5]])
    assert alone["examples_positive"] - doubled["examples_positive"] == 5
    assert alone["examples_negative"] == doubled["examples_negative"]


def test_at_most_max_examples_of_a_label_are_sampled(
    tmp_path: Path, prose: list[Document], names: list[Document]
) -> None:
    result = train(tmp_path, prose, names, max_examples=60)
    assert (result["examples_positive"], result["examples_negative"]) == (60, 60)


def test_a_sample_has_the_smallest_hashes_in_any_order() -> None:
    offers = [(f"{i % 7:02x}", f"id{i}") for i in range(30)]
    for seed in range(5):
        chosen = Smallest(3)
        for rank, id in random.Random(seed).sample(offers, len(offers)):
            chosen.offer(rank, id, {})
        assert [(rank, id) for rank, id, _ in chosen.rows()] == [("00", "id0"), ("01", "id1"), ("02", "id16")]


def test_a_label_or_an_end_mark_in_a_text_is_text(tmp_path: Path, prose: list[Document], names: list[Document]) -> None:
    assert one_line("a __label__positive\n\tb </s> \0 c", lowercase=False) == "a __label _positive b < /s> c"
    assert one_line("A\u2028B", lowercase=True) == "a b"
    poisoned = [dataclasses.replace(d, text=f"__label__positive __label__new </s>\n{d.text}") for d in names]
    result = train(tmp_path, prose, poisoned)
    assert result["recall_negative"] > 0.8
    sha256 = find_model(f"{tmp_path}/model")[1]
    assert load_classifier(f"{tmp_path}/model", sha256).labels == ("negative", "positive")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"validation_fraction": 0}, "validation_fraction is 0, expected a number above 0"),
        ({"validation_fraction": 1.5}, "validation_fraction is 1.5, expected a number from 0 to below 1"),
        ({"epochs": 0}, "epochs is 0, expected at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected a number above 0"),
        ({"learning_rate": 1e30}, "fastText diverged .* at learning_rate=1e.30"),
        ({"examples": {"one": "x"}}, "expected two or more names"),
        ({"examples": {"one": "x", "t wo": "x"}}, "expected two or more names"),
    ],
)
def test_an_invalid_config_is_an_error(
    changes: dict[str, Any], sentence: str, tmp_path: Path, prose: list[Document], names: list[Document]
) -> None:
    if "examples" in changes:
        with pytest.raises(TrainingError, match=sentence):
            train_fasttext(unwrap_versioned_value(TrainFastTextConfig(output_path=str(tmp_path), **changes)))
        return
    with pytest.raises(ValueError, match=sentence):
        train(tmp_path, prose[:200], names[:100], **changes)


def test_a_label_without_examples_is_an_error(tmp_path: Path, prose: list[Document], names: list[Document]) -> None:
    with pytest.raises(TrainingError, match=r"The label 'negative' .* has no example on the validation side"):
        train(tmp_path, prose, names[:3])


def test_a_changed_model_is_an_error(tmp_path: Path, prose: list[Document], names: list[Document]) -> None:
    train(tmp_path, prose, names)
    with open(f"{tmp_path}/model/model.bin", "ab") as file:
        file.write(b"x")
    with pytest.raises(ClassifierError, match=r"is not the model that 'model.json' beside it describes"):
        find_model(f"{tmp_path}/model")
    with pytest.raises(ClassifierError, match="No model exists at"):
        find_model(f"{tmp_path}/positive")
