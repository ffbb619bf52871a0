"""Heads and whole encoders of the families beside BERT are trained, and written under the names that were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoder_families import write_family
from encoder_outputs import write_named
from gte_in_numpy import CONFIG as GTE
from gte_in_numpy import shapes_of
from safetensors.numpy import load_file
from shard_files import data_of, write_shards

from marin_assets.documents import Document
from marin_assets.inference.encoder.classifier import find_classifier, load_classifier
from marin_assets.stages.quality.score_by_encoder import ScoreByEncoderConfig, score_by_encoder
from marin_assets.stages.quality.train_encoder import LinearHead, TrainEncoderConfig, WholeEncoder, train_encoder
from marin_assets.step.values import unwrap_versioned_value

TEXTS = {
    "prose": [f"The {i} is a sentence of words that someone has written about the {i}." for i in range(30)],
    "names": [f"x{i} = int y{i} = str z{i} = float" for i in range(30)],
}


def write(folder: Path, name: str) -> str:
    texts = [text for texts in TEXTS.values() for text in texts]
    if name == "gte":
        return write_family(folder, GTE, shapes_of(GTE), texts)
    return write_named(folder, name, texts)


def train(folder: Path, encoder: str, output: str, training: LinearHead | WholeEncoder) -> dict[str, Any]:
    documents = {
        label: [Document(id=f"{label}/{i}", text=text) for i, text in enumerate(texts)]
        for label, texts in TEXTS.items()
    }
    config = TrainEncoderConfig(
        encoder_path=encoder,
        examples={label: write_shards(folder / label, of_label, 1) for label, of_label in documents.items()},
        output_path=f"{folder}/{output}",
        training=training,
        max_tokens=32,
        validation_fraction=0.3,
    )
    return train_encoder(unwrap_versioned_value(config))


def encoder_of(folder: str, prefixes: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The tensors of a file below one of the prefixes, without it."""
    tensors = load_file(f"{folder}/model.safetensors")
    return {
        name.removeprefix(prefix): array
        for name, array in tensors.items()
        for prefix in prefixes
        if name.startswith(prefix) and "pooler" not in name
    }


FAMILIES = {"modernbert": "model.", "deberta_v3": "deberta.", "gte": "new.", "electra": "electra."}


@pytest.mark.long
def test_a_head_on_modernbert_distinguishes_prose_from_names(tmp_path: Path) -> None:
    encoder = write(tmp_path / "encoder", "modernbert")
    assert train(tmp_path, encoder, "model", LinearHead(steps=40))["accuracy"] > 0.9
    written = load_file(tmp_path / "model/model.safetensors")
    assert written.pop("marin_head.weight").shape == (2, 36)
    assert written.pop("marin_head.bias").shape == (2,)
    read = encoder_of(encoder, ("model.",))
    assert written.keys() == read.keys()
    assert all(np.array_equal(written[name], read[name]) for name in read)


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_all_weights_of_each_family_are_trained_and_score_as_they_did(name: str, tmp_path: Path) -> None:
    encoder = write(tmp_path / "encoder", name)
    training = WholeEncoder(epochs=2, batch=16, learning_rate=3e-4, head=LinearHead(steps=30))
    assert train(tmp_path, encoder, "model", training)["accuracy"] > 0.9
    train(tmp_path, encoder, "again", training)
    assert data_of(tmp_path / "model") == data_of(tmp_path / "again")
    before, after = encoder_of(encoder, (FAMILIES[name],)), load_file(tmp_path / "model/model.safetensors")
    assert after.keys() - {"marin_head.weight", "marin_head.bias"} == before.keys()
    assert not [key for key, array in before.items() if np.array_equal(array, after[key])], "all are trained"
    model = f"{tmp_path}/model"
    config = ScoreByEncoderConfig(
        documents_path=f"{tmp_path}/prose", model_path=model, output_path=f"{tmp_path}/scored", label="prose",
        at_least=0.5,
    )  # fmt: skip
    assert score_by_encoder(unwrap_versioned_value(config))["kept"] > 25
    scores = load_classifier(model, find_classifier(model)).scores(TEXTS["names"], "prose")
    assert np.mean(scores) < 0.5
