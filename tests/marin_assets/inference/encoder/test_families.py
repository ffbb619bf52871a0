"""Hidden states and scores of each family are those of transformers, and of GTE those of a reference in numpy."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from encoder_families import FAMILIES, LENGTHS, MASK, TOKENS, config_of, weights_of, write_family
from encoder_outputs import BUCKETS, DISTANCES, EVERY, read_outputs, write_named
from gte_in_numpy import CONFIG as GTE
from gte_in_numpy import hidden_and_scores, shapes_of
from safetensors.numpy import load_file, save_file

from marin_assets.inference.encoder.classifier import EncoderClassifier, find_classifier, load_classifier
from marin_assets.inference.encoder.deberta import bucket_of, by_distance
from marin_assets.inference.encoder.encoder import load_encoder
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.families import architecture_of
from marin_assets.inference.encoder.parameters import gather, scatter

QUICK = ("modernbert", "deberta_v3", "electra")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in FAMILIES]
ROWS, MASKS = np.array(TOKENS, np.int32), np.array(MASK, np.int32)


def load(folder: str) -> EncoderClassifier:
    return load_classifier(folder, find_classifier(folder), max(LENGTHS))


def states(classifier: EncoderClassifier, tokens: Any = ROWS, mask: Any = MASKS) -> np.ndarray:
    encoder = classifier.encoder
    return np.asarray(jax.jit(encoder.architecture.hidden_states)(encoder.arrays, tokens, mask))


@pytest.mark.parametrize("name", NAMES)
def test_hidden_states_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    ours, theirs = states(load(write_named(tmp_path, name))), read_outputs()[name]["hidden"]
    for row, (length, expected) in enumerate(zip(LENGTHS, theirs, strict=True)):
        assert np.abs(ours[row, :length:EVERY] - np.array(expected)).max() < 2e-5


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    classifier = load(write_named(tmp_path, name))
    outputs = np.asarray(classifier.outputs(ROWS, MASKS))
    np.testing.assert_allclose(outputs, np.array(read_outputs()[name]["scores"]), rtol=1e-6, atol=1e-6)


def gte(**changes: Any) -> dict[str, Any]:
    return {**GTE, **changes}


def test_scores_of_gte_are_those_of_the_reference(tmp_path: Path) -> None:
    scores = np.asarray(load(write_family(tmp_path, GTE, shapes_of(GTE))).outputs(ROWS, MASKS))
    for row in (2, 3):
        _, shares = hidden_and_scores(weights_of(shapes_of(GTE)), TOKENS[row][: LENGTHS[row]], GTE)
        assert np.abs(scores[row] - shares).max() < 1e-6


@pytest.mark.long
@pytest.mark.parametrize("config", [gte(), gte(rope_scaling=None), gte(type_vocab_size=1)])
def test_hidden_states_of_gte_are_those_of_the_reference(config: dict[str, Any], tmp_path: Path) -> None:
    shapes = shapes_of(config)
    classifier = load(write_family(tmp_path, config, shapes))
    ours, scores = states(classifier), np.asarray(classifier.outputs(ROWS, MASKS))
    for row, length in enumerate(LENGTHS):
        theirs, shares = hidden_and_scores(weights_of(shapes), TOKENS[row][:length], config)
        assert np.abs(ours[row, :length] - theirs).max() < 2e-5
        assert np.abs(scores[row] - shares).max() < 1e-6


@pytest.mark.long
@pytest.mark.parametrize("name", ["modernbert", "deberta_v3", "deberta_v2", "new"])
def test_the_states_of_a_row_depend_on_no_other_and_not_on_padding(name: str, tmp_path: Path) -> None:
    folder = write_family(tmp_path, GTE, shapes_of(GTE)) if name == "new" else write_named(tmp_path, name)
    classifier = load(folder)
    whole = states(classifier)
    for row, length in enumerate(LENGTHS):
        other = np.full_like(ROWS, 5)
        other[row, :length] = ROWS[row, :length]
        assert np.array_equal(states(classifier, other, MASKS)[row, :length], whole[row, :length])
        alone = states(classifier, ROWS[row : row + 1, :length], MASKS[row : row + 1, :length])
        assert np.abs(alone[0] - whole[row, :length]).max() < 2e-5


@pytest.mark.parametrize("name", [*FAMILIES, "new"])
def test_parameters_are_written_as_they_were_read(name: str, tmp_path: Path) -> None:
    folder = write_family(tmp_path, GTE, shapes_of(GTE)) if name == "new" else write_named(tmp_path, name)
    encoder, config, tensors = load_encoder(folder, 40)
    architecture = architecture_of(config, "there")
    written = scatter(encoder.arrays, architecture)
    prefix, head = architecture.prefix, architecture.head
    own = {key: array for key, array in tensors.items() if key.startswith(prefix) and head.dense not in key}
    assert {prefix + key: array.tobytes() for key, array in written.items()} == {
        key: array.tobytes() for key, array in own.items()
    }
    again = gather(written, architecture, "there")
    assert all(np.array_equal(again[key], np.asarray(array)) for key, array in encoder.arrays.items())


def test_a_config_of_transformers_5_is_that_of_transformers_4(tmp_path: Path) -> None:
    config = config_of("modernbert")
    kinds = ["full_attention" if layer % 3 == 0 else "sliding_attention" for layer in range(5)]
    rope = {
        "full_attention": {"rope_type": "default", "rope_theta": config.pop("global_rope_theta")},
        "sliding_attention": {"rope_type": "default", "rope_theta": config.pop("local_rope_theta")},
    }
    newer = {**config, "layer_types": kinds, "rope_parameters": rope}
    assert architecture_of(newer, "there") == architecture_of(config_of("modernbert"), "there")


def test_distances_are_in_the_buckets_of_transformers() -> None:
    distances = np.arange(DISTANCES)
    for (buckets, farthest), expected in zip(BUCKETS, read_outputs()["buckets"], strict=True):
        assert bucket_of(distances, buckets, farthest).tolist() == expected
        assert bucket_of(-distances, buckets, farthest).tolist() == [-bucket for bucket in expected]


@pytest.mark.parametrize("length", [2, 3, 8])
def test_products_by_distance_are_products_by_position(length: int) -> None:
    products = np.random.default_rng(0).standard_normal((2, length, 2 * length - 1))
    by_position = by_distance(products)
    for row in range(length):
        for column in range(length):
            assert (by_position[:, row, column] == products[:, row, column - row + length - 1]).all()


def edit(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def rename(folder: Path, names: dict[str, str]) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({names.get(name, name): array for name, array in tensors.items()}, folder / "model.safetensors")


def shorten(folder: Path, name: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, name: tensors[name][:-1]}, folder / "model.safetensors")


OTHERWISE = "Pass another encoder; score_by_function scores by any model"


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("deberta_v3", partial(edit, conv_kernel_size=3), rf"a convolution .*\(conv_kernel_size 3\).* {OTHERWISE}"),
        (
            "deberta_v3",
            partial(edit, pooler_hidden_act="mish"),
            rf"the activation 'mish', expected .*{OTHERWISE}",
        ),
        (
            "deberta_v3",
            partial(rename, names={"pooler.dense.weight": "fc.weight", "pooler.dense.bias": "fc.bias"}),
            r"without the head of a classifier \(no 'pooler.dense.weight' beside 'classifier.bias', "
            r"'classifier.weight', 'fc.bias', 'fc.weight'\). Pass a sequence classifier, or train a head",
        ),
        (
            "deberta_v3",
            partial(shorten, name="pooler.dense.weight"),
            r"'pooler.dense.weight' in .* has the shape \(35, 36\), expected \(36, 36\): the head is not that of a",
        ),
        ("modernbert", partial(edit, classifier_pooling="max"), r"has classifier_pooling 'max', expected one of"),
        ("modernbert", partial(edit, rope_scaling={"type": "yarn"}), r"has rotary positions of type 'yarn', expected"),
        (
            "modernbert",
            partial(edit, layer_types=["full_attention"]),
            r"has layer_types \['full_attention'\], exp",
        ),
        ("modernbert", partial(edit, classifier_bias=True), r"\(no 'head.dense.bias' beside 'classifier.bias'"),
        ("modernbert", partial(edit, hidden_size=None), r"has no 'hidden_size', expected that of a modernbert model"),
        ("new", partial(edit, layer_norm_type="rms_norm"), r"has layer_norm_type 'rms_norm', expected 'layer_norm'"),
        ("new", partial(edit, rope_scaling={"type": "ntk"}), r"has rope_scaling \{'type': 'ntk'\}, expected the type"),
        ("electra", partial(edit, model_type="deberta"), rf"has a model of type 'deberta', expected an .*{OTHERWISE}"),
    ],
)
def test_a_model_that_is_not_read_is_one_sentence(name: str, damage: Any, sentence: str, tmp_path: Path) -> None:
    if name == "new":
        write_family(tmp_path, GTE, shapes_of(GTE))
    else:
        write_named(tmp_path, name)
    damage(tmp_path)
    with pytest.raises(EncoderError, match=sentence):
        load(str(tmp_path))
