"""A training goes on from a checkpoint or from a Hugging Face folder, with the schedule of the new run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.starting_point import StartingPoint, find_start
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.specs.model import ModelSpec, model_from_hf
from marin_assets.stages.train.specs.optimizer import LoopSpec, NamedOptimizerSpec
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace, Start
from marin_assets.stages.train.train_lm import LlamaSpec, OptimizerSpec, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json, write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import encode

pytestmark = [
    pytest.mark.filterwarnings("default"),  # warnings of Levanter and its dependencies
    pytest.mark.timeout(1200),  # several trainings, each compiled
]

TINY = LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)
BEFORE, STEPS, KILLED_AT, EVERY = 40, 12, 9, 4
PEAK = 1e-3
LINEAR = OptimizerSpec(learning_rate=PEAK, warmup=0.0, lr_schedule="linear", min_lr_ratio=0.0)
KILLED = """
import json, os, signal, sys
from marin_assets.stages.train.metrics.metrics import MetricsFile
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode

def add(self, step, metrics, as_it_is=MetricsFile.add):
    if step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    as_it_is(self, step, metrics)

MetricsFile.add = add
train_lm(decode(json.loads(sys.argv[1])))
"""


def config_of(inputs: Any, output: Path, **changes: Any) -> TrainLmConfig:
    settings = {
        "components": inputs.components,
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": TINY,
        "optimizer": LINEAR,
        "num_train_steps": STEPS,
        "train_batch_size": 4,
        "steps_per_eval": 5,
        "max_eval_batches": 2,
        "steps_per_checkpoint": EVERY,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    return unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))


@pytest.fixture(scope="module")
def earlier(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A finished training."""
    output = tmp_path_factory.mktemp("earlier") / "nano"
    optimizer = OptimizerSpec(learning_rate=3e-3)
    config = config_of(inputs, output, num_train_steps=BEFORE, optimizer=optimizer, steps_per_checkpoint=20)
    return output, train_lm(config)


def write_checkpoint(path: str, step: int, *, temporary: bool = False) -> None:
    write_json(join(path, f"step-{step}/metadata.json"), {"step": step, "is_temporary": temporary})


def find(start: Start, output: str, inputs: Any, *, is_resumed: bool = False) -> StartingPoint | None:
    return find_start(unwrap_versioned_value(start), output, inputs.tokenizer_path, is_resumed=is_resumed)


def test_a_run_goes_on_from_the_checkpoint_that_its_first_attempt_chose(disk_or_gcs_prefix: str, inputs: Any) -> None:
    path, output = join(disk_or_gcs_prefix, "running/checkpoints"), join(disk_or_gcs_prefix, "next")
    start = FromCheckpoint(checkpoints_path=path)
    for step in (10, 20):
        write_checkpoint(path, step)
    write_checkpoint(path, 25, temporary=True)
    write_bytes(join(path, "step-30/manifest.ocdbt"), b"x")  # not complete yet
    first = find(start, output, inputs)
    write_checkpoint(path, 30)
    again = find(start, output, inputs)
    assert first == again == StartingPoint(path=join(path, "step-20"), step=20)
    assert read_json(join(output, "start.json")) == {"step": 20}
    resumed = find(FromCheckpoint(checkpoints_path="/gone"), output, inputs, is_resumed=True)
    assert resumed == StartingPoint(path="/gone/step-20", step=20), "it has a checkpoint of its own by then"


def test_a_cooldown_counts_on_from_the_step_of_its_checkpoint(tmp_path: Path, inputs: Any) -> None:
    write_checkpoint(f"{tmp_path}/checkpoints", 20)
    found = find(
        FromCheckpoint(checkpoints_path=f"{tmp_path}/checkpoints", optimizer_state=True), f"{tmp_path}", inputs
    )
    assert found is not None
    assert found.first_step == 21


def test_a_start_that_is_not_there_is_one_sentence(tmp_path: Path, inputs: Any) -> None:
    path = f"{tmp_path}/checkpoints"
    with pytest.raises(TrainError, match=r"has no complete permanent checkpoint\. Pass output_path_of"):
        find(FromCheckpoint(checkpoints_path=path), f"{tmp_path}/a", inputs)
    write_checkpoint(path, 10)
    with pytest.raises(TrainError, match=r"permanent checkpoint of step 11; it has 10\. Pass the number"):
        find(FromCheckpoint(checkpoints_path=path, step=11), f"{tmp_path}/b", inputs)
    with pytest.raises(TrainError, match="is one checkpoint, expected the folder of checkpoints"):
        find(FromCheckpoint(checkpoints_path=f"{path}/step-10"), f"{tmp_path}/c", inputs)
    write_bytes(f"{tmp_path}/d/start.json", b'{"step": "10"}')
    with pytest.raises(TrainError, match=r"start\.json' is damaged"):
        find(FromCheckpoint(checkpoints_path=path), f"{tmp_path}/d", inputs)
    with pytest.raises(TrainError, match=r"has no config\.json, expected a Hugging Face folder"):
        find(FromHuggingFace(path=path), f"{tmp_path}/e", inputs)


def test_weights_of_another_vocabulary_are_refused(tmp_path: Path, inputs: Any) -> None:
    write_checkpoint(f"{tmp_path}/checkpoints", 10)
    shutil.copytree(inputs.tokenizer_path, tmp_path / "hf")
    start = FromCheckpoint(checkpoints_path=f"{tmp_path}/checkpoints")
    assert find(start, f"{tmp_path}/a", inputs) is not None
    tokenizer = json.loads((tmp_path / "hf/tokenizer.json").read_text())
    tokenizer["added_tokens"][0]["content"] = "<other>"
    (tmp_path / "hf/tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(TrainError, match="another vocabulary than the tokenizer"):
        find(start, f"{tmp_path}/b", inputs)


def test_damaged_weights_of_a_folder_are_named_before_anything_is_loaded(disk_or_gcs_prefix: str, inputs: Any) -> None:
    folder = join(disk_or_gcs_prefix, "model")
    head = json.dumps({"__metadata__": {}, "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    whole = len(head).to_bytes(8, "little") + head + bytes(16)
    write_json(join(folder, "config.json"), {"model_type": "llama"})
    write_bytes(join(folder, "model.safetensors"), whole)
    start = FromHuggingFace(path=folder)
    assert find(start, join(disk_or_gcs_prefix, "a"), inputs) is not None
    for content, sentence in (
        (whole[:-1], f"they have {len(whole) - 1} bytes, expected {len(whole)}. Restore the file"),
        (whole[:20], "they have 20 bytes"),
        (b"", "they have 0 bytes"),
        (b"<html>not found</html>", "they have 22 bytes"),
    ):
        write_bytes(join(folder, "model.safetensors"), content)
        with pytest.raises(TrainError, match=f"model.safetensors' are damaged: {sentence}"):
            find(start, join(disk_or_gcs_prefix, "a"), inputs)
    write_json(join(folder, "model.safetensors.index.json"), {"weight_map": {"a": "model-00001-of-00002.safetensors"}})
    with pytest.raises(TrainError, match=r"has no 'model-00001-of-00002\.safetensors', which its model\.safetensors"):
        find(start, join(disk_or_gcs_prefix, "a"), inputs)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["weights", "cooldown", "export"])
def test_a_run_begins_where_another_ended_and_learns_by_its_own_schedule(
    kind: str, earlier: tuple[Path, dict[str, Any]], inputs: Any, tmp_path: Path
) -> None:
    output, before = earlier
    checkpoints = f"{output}/checkpoints"
    starts: dict[str, Start] = {
        "weights": FromCheckpoint(checkpoints_path=checkpoints),
        "cooldown": FromCheckpoint(checkpoints_path=checkpoints, step=BEFORE - 1, optimizer_state=True),
        "export": FromHuggingFace(path=f"{output}/hf"),
    }
    result = train_lm(config_of(inputs, tmp_path / "straight", start=starts[kind]))
    first = BEFORE if kind == "cooldown" else 0
    assert result["loss_start"] == pytest.approx(before["loss_end"], rel=1e-5)
    assert result["loss_end"] < result["loss_start"]
    assert result["steps"] == STEPS
    assert result["started_from"]["step"] == (None if kind == "export" else BEFORE - 1)
    rows = read_metrics(f"{tmp_path}/straight/metrics.jsonl")
    rates = {row["step"] - first: row["optim/learning_rate"] for row in rows if "optim/learning_rate" in row}
    assert rates
    assert rates == {step: pytest.approx(PEAK * (1 - step / STEPS), rel=1e-4) for step in rates}
    assert max(rates) == STEPS - 1

    killed = config_of(inputs, tmp_path / "killed", start=starts[kind])
    arguments = [sys.executable, "-c", KILLED, json.dumps(encode(killed)), str(first + KILLED_AT)]
    assert subprocess.run(arguments, timeout=800, check=False).returncode == -signal.SIGKILL
    assert train_lm(killed)["resumed_from_step"] in (first + 4, first + 8)  # 8 is written while the next step trains
    assert weights_of(tmp_path / "killed") == weights_of(tmp_path / "straight")
    assert [row.get("train/loss") for row in read_metrics(f"{tmp_path}/killed/metrics.jsonl")] == [
        row.get("train/loss") for row in rows
    ]


@pytest.mark.long
def test_a_model_that_does_not_fit_the_weights_is_refused_before_it_trains(
    earlier: tuple[Path, dict[str, Any]], inputs: Any, tmp_path: Path
) -> None:
    output, _ = earlier
    start = FromCheckpoint(checkpoints_path=f"{output}/checkpoints")
    wide = LlamaSpec(max_seq_len=32, hidden_dim=64, intermediate_dim=64, num_layers=1, num_heads=1)
    with pytest.raises(TrainError, match="and this run's model has"):
        train_lm(config_of(inputs, tmp_path / "a", start=start, model=wide))
    export = FromHuggingFace(path=f"{output}/hf")
    with pytest.raises(TrainError, match=r"has hidden_size=32, and the training hidden_size=64\. Pass the shape"):
        train_lm(config_of(inputs, tmp_path / "b", start=export, model=wide))
    qwen = ModelSpec(family="qwen3", max_seq_len=32, hidden_dim=32, num_layers=1, num_heads=1, num_kv_heads=1)
    with pytest.raises(TrainError, match=r"has model_type='llama', .* and the training model_type='qwen3'"):
        train_lm(config_of(inputs, tmp_path / "c", start=export, model=qwen))
    cooldown = FromCheckpoint(checkpoints_path=f"{output}/checkpoints", optimizer_state=True)
    with pytest.raises(TrainError, match="has no averaged weights, and this run keeps an average"):
        train_lm(config_of(inputs, tmp_path / "d", start=cooldown, loop=LoopSpec(ema_beta=0.9)))
    with pytest.raises(TrainError, match="its optimizer is another one"):
        train_lm(config_of(inputs, tmp_path / "e", start=cooldown, optimizer=NamedOptimizerSpec(kind="muon")))
    for run in "abcde":
        assert not os.path.exists(tmp_path / run / "checkpoints")


@pytest.mark.long
def test_the_model_of_a_folder_takes_its_shape_from_there(
    earlier: tuple[Path, dict[str, Any]], inputs: Any, tmp_path: Path
) -> None:
    folder = f"{earlier[0]}/hf"
    changes = {"model": model_from_hf(folder), "start": FromHuggingFace(path=folder)}
    result = train_lm(config_of(inputs, tmp_path, num_train_steps=2, **changes))
    assert result["parameters"] == earlier[1]["parameters"]
    assert result["loss_start"] == pytest.approx(earlier[1]["loss_end"], rel=1e-5)


def weights_of(output: Path) -> bytes:
    return (output / "hf/model.safetensors").read_bytes()
