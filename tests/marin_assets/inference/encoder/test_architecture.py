"""Hidden states and scores are those of transformers' models in JAX, which its release 5 no longer has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import serialize
from safetensors.numpy import load_file
from tiny_encoders import write_encoder

from marin_assets.inference.encoder.batches import batches_of, padded, padded_lengths, rows_of
from marin_assets.inference.encoder.classifier import find_classifier, load_classifier
from marin_assets.inference.encoder.encoder import load_encoder
from marin_assets.inference.encoder.families import architecture_of
from marin_assets.inference.encoder.parameters import gather, scatter

TEXTS = ["The first of two sentences.", "A word", "Here is one that is longer than all of the others, by far."]
KINDS = ["bert", "roberta", "xlm-roberta", "distilbert"]


def of_transformers(folder: str, name: str) -> Any:
    """The model of a folder, of this class of transformers."""
    import transformers

    return getattr(transformers, name).from_pretrained(folder)


FLAX = {"bert": "FlaxBert", "roberta": "FlaxRoberta", "xlm-roberta": "FlaxXLMRoberta", "distilbert": "FlaxDistilBert"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "activation"),
    [("bert", "gelu"), ("roberta", "gelu"), ("distilbert", "gelu"), ("bert", "gelu_new"), ("distilbert", "relu")],
)
def test_hidden_states_are_those_of_transformers(kind: str, activation: str, tmp_path: Path) -> None:
    key = "activation" if kind == "distilbert" else "hidden_act"
    folder = write_encoder(tmp_path, TEXTS, kind=kind, bare=activation == "relu", **{key: activation})
    encoder, _, _ = load_encoder(folder, 40)
    tokens, mask = padded(encoder.tokens(TEXTS), 4, 48 - 8)
    ours = encoder.architecture.hidden_states(encoder.arrays, tokens, mask)
    theirs = of_transformers(folder, f"{FLAX[kind]}Model")(tokens, mask)[0]
    assert np.abs(np.asarray(ours - theirs))[mask > 0].max() < 2e-5


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_weights_of_half_precision_are_read(kind: Any, tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, TEXTS, labels=("good", "bad"))
    whole = load_classifier(folder, find_classifier(folder), 40).scores(TEXTS, "good")
    tensors = {name: np.asarray(array, kind) for name, array in load_file(f"{folder}/model.safetensors").items()}
    name = "bfloat16" if kind is ml_dtypes.bfloat16 else "float16"
    entries = {key: {"dtype": name, "shape": each.shape, "data": each.tobytes()} for key, each in tensors.items()}
    Path(folder, "model.safetensors").write_bytes(serialize(entries))
    half = load_classifier(folder, find_classifier(folder), 40).scores(TEXTS, "good")
    assert half != whole
    assert half == pytest.approx(whole, abs=0.02)


@pytest.mark.parametrize("kind", ["bert", *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS[1:])])
def test_scores_of_a_sequence_classifier_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, TEXTS, kind=kind, labels=("good", "bad", "unclear"))
    classifier = load_classifier(folder, find_classifier(folder), 40)
    tokens, mask = padded(classifier.encoder.tokens(TEXTS), 4, 40)
    logits = of_transformers(folder, f"{FLAX[kind]}ForSequenceClassification")(tokens, mask).logits[:3]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert classifier.labels == ("good", "bad", "unclear")
    assert np.abs(classifier.all_scores(TEXTS) - shares).max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_written_as_they_were_read(kind: str, tmp_path: Path) -> None:
    encoder, config, tensors = load_encoder(write_encoder(tmp_path, TEXTS, kind=kind, bare=True), 40)
    architecture = architecture_of(config, "there")
    written = scatter(encoder.arrays, architecture)
    assert {name: array.tobytes() for name, array in written.items()} == {
        name: array.tobytes() for name, array in tensors.items()
    }
    again = gather(written, architecture, "there")
    assert all(np.array_equal(again[key], np.asarray(array)) for key, array in encoder.arrays.items())


def test_every_text_is_in_one_batch_of_a_size_that_its_length_alone_decides() -> None:
    texts = [[7] * length for length in [*range(1, 129), *[128] * 50, *[5] * 300]]
    batches = list(batches_of(texts, 128))
    assert sorted(place for batch in batches for place in batch.places) == list(range(len(texts)))
    for batch in batches:
        rows, length = batch.tokens.shape
        assert rows == rows_of(length)
        assert length in padded_lengths(128)
        for row, place in enumerate(batch.places):
            fitting = next(padded for padded in padded_lengths(128) if padded >= len(texts[place]))
            assert length == fitting
            assert batch.tokens[row, : len(texts[place])].tolist() == texts[place]
            assert batch.mask[row].sum() == len(texts[place])
        assert not batch.mask[len(batch.places) :].any()
