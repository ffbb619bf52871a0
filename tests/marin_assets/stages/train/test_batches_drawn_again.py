"""The data browser shows what each step of a training was trained on: what a real training has recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser_server import Answer, browsing
from numbered_caches import SEQUENCE, write_numbered
from recorded_training import results, sequences_by_step, start_recorded
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.stages.train.inputs.recorded_config import restore_config
from marin_assets.stages.train.specs.mixture import BlockShuffle, Mixture, Subset
from marin_assets.stages.train.specs.optimizer import LoopSpec
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json, write_json
from marin_resources.wire.config_json import encode, plain

STEPS, BATCH = 8, 4
TINY = LlamaSpec(max_seq_len=SEQUENCE, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)
PATIENT = Limits(seconds=200)
TRAIN = "marin_assets.stages.train.train_lm:train_lm"

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]


def config_of(prefix: Path, tokenizer_path: str, **changes: Any) -> TrainLmConfig:
    """A training on two caches in shards, not in the order of their names."""
    settings: dict[str, Any] = {
        "components": {name: f"{prefix}/cache/{name}-abc123" for name in ("web", "code")},
        "tokenizer_path": tokenizer_path,
        "output_path": f"{prefix}/models/nano-abc123",
        "model": TINY,
        "num_train_steps": STEPS,
        "train_batch_size": BATCH,
        "steps_per_eval": 50,
        "max_eval_batches": 1,
        "compilation_cache_dir": f"{tokenizer_path}/../jax",
    }
    return unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))


def write_caches(prefix: Path, tokenizer_path: str) -> None:
    for name, base, sequences, shards in (("web", 10, 90, 3), ("code", 150, 50, 2)):
        write_numbered(prefix / f"cache/{name}-abc123", tokenizer_path, base, sequences, shards=shards, validation=4)
        store_output(str(prefix), f"cache/{name}", {})


def store_training(prefix: Path, config: TrainLmConfig) -> None:
    store_output(
        str(prefix), "models/nano", {}, config=plain(encode(config)), reads=["cache/web-abc123", "cache/code-abc123"]
    )
    path = str(prefix / "models/nano-abc123/.executor_info")
    write_json(path, read_json(path) | {"fn_name": TRAIN})


def tokens_on(answer: Answer) -> list[list[int]]:
    """The ids of each sequence on the page."""
    assert answer.status == 200, answer.sentence
    sections = answer.html.split("<section data-row>")[1:]
    return [[int(id) for id in re.findall(r'title="id (\d+)"', section)] for section in sections]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["two caches", "a mixture"])
def test_the_sequences_of_every_step_are_those_that_a_training_recorded(inputs: Any, tmp_path: Path, kind: str) -> None:
    write_caches(tmp_path, inputs.tokenizer_path)
    config = config_of(tmp_path, inputs.tokenizer_path)
    changes: dict[str, Any] = {"loop": LoopSpec(batch_schedule=((0, 2), (3, 5)), data_seed=7), "seed": 3}
    if kind == "a mixture":
        mixture = Mixture(
            components=config.components,
            weights=[(0, {"web": 0.75, "code": 0.25}), (4, {"web": 0.25, "code": 0.75})],
            block_size=16,
            subsets={"web": Subset(sequences=12, seed=1)},
            shuffle=BlockShuffle(io_block_size=2, window_blocks=3),
        )
        changes = {"mixture": mixture, "components": {}}
    config = config_of(tmp_path, inputs.tokenizer_path, **changes)
    results([start_recorded(json.dumps(encode(config)), tmp_path / "recorded")])
    recorded = sequences_by_step(tmp_path / "recorded")
    assert sorted(recorded) == list(range(STEPS))
    store_training(tmp_path, config)
    with browsing(str(tmp_path), inputs.tokenizer_path, limits=PATIENT) as browser:
        for step, sequences in recorded.items():
            shown = tokens_on(browser.get("batch", path="models/nano-abc123", step=step))
            assert shown == [[token] * SEQUENCE for token in sequences]


def test_a_batch_names_its_documents_and_leads_to_them(inputs: Any, tmp_path: Path) -> None:
    write_caches(tmp_path, inputs.tokenizer_path)
    store_training(tmp_path, config_of(tmp_path, inputs.tokenizer_path))
    with browsing(str(tmp_path), inputs.tokenizer_path, limits=PATIENT) as browser:
        assert "See what it was trained on" in browser.get("output", path="models/nano-abc123").text
        answer = browser.get("batch", path="models/nano-abc123", step=5)
        for section in answer.html.split("<section data-row>")[1:]:
            [link] = re.findall(r'href="(/tokens[^"]+)"', section)
            [name] = re.findall(r'href="/way[^"]+"><bdi>(\d+)</bdi>', section)
            ids = set(re.findall(r'title="id (\d+)"', section))
            page = browser.send("GET", link.replace("&amp;", "&"))
            assert ids == {name} == set(re.findall(r'title="id (\d+)"', page.html))
        alone = browser.get("batch", path="models/nano-abc123", step=5, sequence=2)
        assert tokens_on(alone) == tokens_on(answer)[2:3]
        assert "no 8" in browser.get("batch", path="models/nano-abc123", step=STEPS).sentence
        assert "no sequence 4" in browser.get("batch", path="models/nano-abc123", step=1, sequence=4).sentence
        assert "no output of train_lm" in browser.get("batch", path="cache/web-abc123").sentence


def test_a_batch_of_caches_that_are_damaged_or_outside_is_a_sentence(inputs: Any, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    write_caches(prefix, inputs.tokenizer_path)
    store_training(prefix, config_of(prefix, inputs.tokenizer_path))
    with browsing(str(prefix), limits=PATIENT) as browser:
        outside = browser.get("batch", path="models/nano-abc123", step=0)
        assert outside.status == 403
        assert "which the training reads, is outside of what is shown" in outside.sentence
    with browsing(str(prefix), inputs.tokenizer_path, limits=PATIENT) as browser:
        for array in (prefix / "cache/web-abc123/train").rglob("data/zarr.json"):
            fields = json.loads(array.read_text())
            array.write_text(json.dumps(fields | {"chunk_grid": {"name": "regular", "configuration": {}}}))
        damaged = browser.get("batch", path="models/nano-abc123", step=0)
        assert damaged.status == 422
        assert "cannot be read" in damaged.sentence
        secret = tmp_path / "secret"
        secret.mkdir()
        (prefix / "cache/web-abc123/train").rename(secret / "train")
        (prefix / "cache/web-abc123/train").symlink_to(secret / "train")
        linked = browser.get("batch", path="models/nano-abc123", step=0)
        assert linked.status == 403
        store_training(prefix, config_of(prefix, inputs.tokenizer_path))
        record = str(prefix / "models/nano-abc123/.executor_info")
        write_json(record, read_json(record) | {"config": {"components": 7, "surprise": 1}})
        assert "surprise" in browser.get("batch", path="models/nano-abc123", step=0).sentence


def test_the_config_of_a_record_is_that_of_the_training(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        "tokenizer",
        components={},
        mixture=Mixture(components={"a": "x"}, weights={"a": 1.0}, shuffle=BlockShuffle(io_block_size=2)),
        loop=LoopSpec(batch_schedule=((0, 2), (3, 4))),
        levanter={"optimizer.epsilon": 1e-9},
    )
    recorded = json.loads(json.dumps(plain(encode(config))))
    assert restore_config(TrainLmConfig, recorded) == config
