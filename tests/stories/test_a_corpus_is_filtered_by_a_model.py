"""A model scores a sample by a rubric, a classifier learns from it, and the whole corpus is scored."""

from __future__ import annotations

import sys
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import dagster as dg
import pytest
from random_llama import write_random_llama
from running import reused, run_steps
from tiny_encoders import write_encoder

from marin_assets import output_path_of
from marin_assets.defaults import Datashop, default_datashop, default_download
from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.inference.engine import VLLM
from marin_assets.plan.requirements import missing_requirements_of
from marin_assets.step.graph import build_graph
from marin_assets.step.values import ConfigError
from marin_resources.ray_tpu.requirements import describe_missing
from marin_resources.storage.files import read_json

RUBRIC = "From 0 to 5, how much is this about classes?\nText:{text}\nScore:"
SERVER = Path(__file__).parents[1] / "support/rule_abiding_server.py"
SAMPLE = 900
UNCUT = 500
"""Characters of a text that fits in the model's window."""


@pytest.fixture
def model_path(tmp_path: Path) -> str:
    (tmp_path / "hf").mkdir()
    return write_random_llama(tmp_path / "hf", list(topics.values())[:50], 512)


@pytest.fixture
def corpus_path(tmp_path: Path) -> str:
    """Paragraphs of Python's help, in four shards."""
    folder = tmp_path / "corpus"
    paragraphs = [
        Document(id=f"{name}#{i}", text=text.strip(), source="pydoc")
        for name, topic in sorted(topics.items())
        for i, text in enumerate(topic.split("\n\n"))
        if len(text) > 60
    ]
    for i in range(4):
        write_documents(str(folder / shard_name(i, 4)), paragraphs[i::4])
    return str(folder)


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_ray_up: None) -> None:
    """A Python whose vLLM abides by the rule."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$1" in -c) exit 0;; -m) shift 2; exec {sys.executable} {SERVER} "$@";; esac\n')
    python.chmod(0o755)
    monkeypatch.setenv("MARIN_VLLM_PYTHON", str(python))


def datashop(corpus_path: str, model_path: str, prompt: str = RUBRIC, **changes: Any) -> Datashop:
    return default_datashop(
        "help",
        default_download("help", corpus_path),
        output_path_of(default_download("rater", model_path)),
        prompt,
        sample=SAMPLE,
        at_least=0.5,
        engine=VLLM,
        **{"precision_at_least": 0.3, "recall_at_least": 0.3, "epochs": 50, "learning_rate": 0.5, **changes},
    )


@pytest.mark.long
def test_the_corpus_is_kept_by_what_the_model_says_about_a_sample(
    corpus_path: str, model_path: str, vllm: None, instance: dg.DagsterInstance, prefix: Path
) -> None:
    shop = datashop(corpus_path, model_path)
    assert run_steps(shop.steps, instance).success

    (labels,), (classifier,), (kept,) = (
        list(prefix.glob(f"{step.name}-??????")) for step in (shop.labels, shop.classifier, shop.kept)
    )
    rated = {label: _documents(labels / label) for label in ("positive", "negative")}
    assert all(_is_positive(one) for one in rated["positive"])
    assert not any(_is_positive(one) for one in rated["negative"] if len(one.text) < UNCUT)
    metrics = read_json(str(classifier / "metrics.json"))
    assert metrics["documents"] == len(rated["positive"]) + len(rated["negative"]) < SAMPLE
    assert metrics["accuracy_lower95"] < metrics["accuracy"] < metrics["accuracy_upper95"]
    assert metrics["accuracy"] > metrics["majority_share"]

    corpus, left = _documents(Path(corpus_path)), _documents(kept)
    share, share_left = (sum(map(_is_positive, of)) / len(of) for of in (corpus, left))
    assert 0 < len(left) < len(corpus)
    assert share_left > 2 * share

    assert all(reused(run_steps(shop.steps, instance)).values())


@pytest.mark.long
def test_the_classifier_can_be_a_head_on_an_encoder(
    corpus_path: str, model_path: str, vllm: None, instance: dg.DagsterInstance, prefix: Path, tmp_path: Path
) -> None:
    texts = [document.text for document in _documents(Path(corpus_path))][:100]
    encoder = write_encoder(tmp_path / "encoder", texts, max_position_embeddings=256)
    settings = {"encoder": default_download("encoder", encoder), "epochs": 5, "learning_rate": 0.1}
    shop = datashop(corpus_path, model_path, **settings, precision_at_least=None, recall_at_least=None)
    assert run_steps(shop.steps, instance).success
    (kept,) = prefix.glob(f"{shop.kept.name}-??????")
    assert 0 < len(_documents(kept)) < len(_documents(Path(corpus_path)))
    assert all(reused(run_steps(shop.steps, instance)).values())
    with pytest.raises(ConfigError, match=r"got epochs=50 and learning_rate=0.1 with an encoder, expected neither"):
        datashop(corpus_path, model_path, **{**settings, "epochs": 50})


@pytest.mark.long
def test_a_prompt_that_gets_no_scores_is_a_sentence(
    corpus_path: str, model_path: str, vllm: None, instance: dg.DagsterInstance, prefix: Path
) -> None:
    """The rule does not find the text that it is asked about, and says nothing about any."""
    shop = datashop(corpus_path, model_path, "{text} How much is this about that?")
    result = run_steps(shop.steps, instance)
    assert not result.success
    failed = [event for event in result.all_events if event.is_step_failure]
    assert len(failed) == 1
    said = str(failed[0].step_failure_data.error_display_string)
    assert f"{SAMPLE} of {SAMPLE} answers have no score between" in said
    assert "correct the prompt." in said


def test_the_plan_says_that_the_engine_is_not_there(
    corpus_path: str, monkeypatch: pytest.MonkeyPatch, prefix: Path
) -> None:
    monkeypatch.setenv("MARIN_VLLM_PYTHON", "/no/python")
    graph = build_graph(datashop(corpus_path, corpus_path).steps)
    missing_by_step = describe_missing(missing_requirements_of(graph, str(prefix)))
    assert missing_by_step == [
        "Step 'generated/help' needs the engine 'vllm', which this machine does not have. The engine 'vllm' needs "
        "vllm, and '/no/python' cannot be run ([Errno 2] No such file or directory: '/no/python'). Set "
        "MARIN_VLLM_PYTHON to the Python of an environment with them. Make one: make .venv-vllm"
    ]


def _is_positive(document: Document) -> bool:
    """By the rule of the server."""
    return "class" in document.text or "method" in document.text


def _documents(folder: Path) -> list[Document]:
    return [one for path in list_shards(str(folder)) for one in read_documents(path)]
