"""Hidden states and scores are those of transformers' models in JAX, which its release 5 no longer has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoders import write_encoder

from marin_assets.inference.encoder.architecture import hidden_states
from marin_assets.inference.encoder.batches import padded
from marin_assets.inference.encoder.classifier import find_classifier, load_classifier
from marin_assets.inference.encoder.encoder import load_encoder

TEXTS = ["The first of two sentences.", "A word", "Here is one that is longer than all of the others, by far."]
KINDS = ["bert", "roberta", "xlm-roberta", "distilbert"]


def of_transformers(folder: str, name: str) -> Any:
    """The model of a folder, of this class of transformers."""
    import transformers

    return getattr(transformers, name).from_pretrained(folder)


FLAX = {"bert": "FlaxBert", "roberta": "FlaxRoberta", "xlm-roberta": "FlaxXLMRoberta", "distilbert": "FlaxDistilBert"}


@pytest.mark.parametrize(
    ("kind", "activation"), [*((kind, "gelu") for kind in KINDS), ("bert", "gelu_new"), ("distilbert", "relu")]
)
def test_hidden_states_are_those_of_transformers(kind: str, activation: str, tmp_path: Path) -> None:
    key = "activation" if kind == "distilbert" else "hidden_act"
    folder = write_encoder(tmp_path, TEXTS, kind=kind, bare=activation == "relu", **{key: activation})
    encoder, _, _ = load_encoder(folder, 40)
    tokens, mask = padded(encoder.tokens(TEXTS), 4, 48 - 8)
    ours = hidden_states(encoder.arrays, tokens, mask, encoder.architecture)
    theirs = of_transformers(folder, f"{FLAX[kind]}Model")(tokens, mask)[0]
    assert np.abs(np.asarray(ours - theirs))[mask > 0].max() < 2e-5


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_a_sequence_classifier_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, TEXTS, kind=kind, labels=("good", "bad", "unclear"))
    classifier = load_classifier(folder, find_classifier(folder), 40)
    tokens, mask = padded(classifier.encoder.tokens(TEXTS), 4, 40)
    logits = of_transformers(folder, f"{FLAX[kind]}ForSequenceClassification")(tokens, mask).logits[:3]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert classifier.labels == ("good", "bad", "unclear")
    assert np.abs(classifier.all_scores(TEXTS) - shares).max() < 1e-6
