"""Caches, checkpoints, metrics and export in a bucket: equal to those on a disk, also after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import object_stores
import pytest

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_bytes, remove, stored_files, write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import encode

pytestmark = pytest.mark.filterwarnings("default")  # warnings of Levanter and its dependencies

STEPS, KILLED_AT = 12, 10
TINY = LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)

TRAIN = """
import json, sys
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode

print(json.dumps(train_lm(decode(json.loads(sys.argv[1])))))
"""
KILLED = f"""
import os, signal
from marin_assets.stages.train.metrics.metrics import MetricsFile

def add(self, step, metrics, as_it_is=MetricsFile.add):
    if step == {KILLED_AT}:
        os.kill(os.getpid(), signal.SIGKILL)
    as_it_is(self, step, metrics)

MetricsFile.add = add
{TRAIN}"""


def config_of(inputs: Any, output: str, **changes: Any) -> TrainLmConfig:
    settings = {
        "components": inputs.components,
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": output,
        "model": TINY,
        "num_train_steps": STEPS,
        "train_batch_size": 4,
        "steps_per_eval": 5,
        "max_eval_batches": 2,
        "steps_per_checkpoint": 4,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    return unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))


def train_in_a_process(program: str, config: TrainLmConfig) -> subprocess.CompletedProcess[str]:
    """Train as a worker does, in a process that ends with the training.

    XLA leaves the unwinder records of code that it has unmapped: after half an hour of trainings in one process, an
    exception of its own ended the process in libgcc (jaxlib 0.10.2, libgcc 12).
    """
    arguments = [sys.executable, "-c", program, json.dumps(encode(config))]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=800, check=False)


def result_of(config: TrainLmConfig) -> dict[str, Any]:
    trained = train_in_a_process(TRAIN, config)
    assert trained.returncode == 0, trained.stderr[-2000:]
    result: dict[str, Any] = json.loads(trained.stdout.splitlines()[-1])
    return result


@pytest.fixture
def inputs_in_a_bucket(inputs: Any, gcs_prefix: str) -> Any:
    """The same caches and tokenizer, copied."""
    fs, root = filesystem_of(gcs_prefix)
    fs.put(os.path.dirname(inputs.tokenizer_path), f"{root}/inputs", recursive=True)
    components = {name: f"{gcs_prefix}/inputs/cache/{name}" for name in inputs.components}
    return type(inputs)(f"{gcs_prefix}/inputs/tokenizer", components, inputs.tokens)


@pytest.mark.long
def test_a_cache_in_another_region_is_trained_on(
    inputs: Any, inputs_in_a_bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path))
    there = os.path.dirname(inputs_in_a_bucket.tokenizer_path)
    monkeypatch.setenv("MARIN_MIRROR_PREFIXES", f"here={tmp_path},there={there}")
    components = {name: f"mirror://cache/{name}" for name in inputs.components}
    trained = result_of(config_of(inputs, str(tmp_path / "out"), components=components, num_train_steps=3))
    assert trained["steps"] == 3
    assert (tmp_path / "cache" / next(iter(inputs.components)) / "train").is_dir()


@pytest.mark.long
def test_a_run_killed_in_a_bucket_resumes_to_the_numbers_of_a_run_on_a_disk(
    inputs: Any, inputs_in_a_bucket: Any, gcs_prefix: str, tmp_path: Path
) -> None:
    on_disk = result_of(config_of(inputs, str(tmp_path / "straight")))
    cache = f"{inputs.tokenizer_path}/../jax"
    config = config_of(inputs_in_a_bucket, join(gcs_prefix, "killed"), compilation_cache_dir=cache)
    killed = train_in_a_process(KILLED, config)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    resumed = result_of(config)
    assert resumed["resumed_from_step"] in (4, 8)
    same = ("loss_start", "loss_end", "train_loss_end", "steps", "parameters")
    assert {name: resumed[name] for name in same} == {name: on_disk[name] for name in same}
    assert weights_of(config.output_path) == weights_of(str(tmp_path / "straight"))
    assert rows_of(config.output_path) == rows_of(str(tmp_path / "straight"))
    assert files_of(config.output_path) == files_of(str(tmp_path / "straight"))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_training_goes_on_from_a_checkpoint_and_an_export_in_a_bucket(inputs: Any, gcs_prefix: str) -> None:
    first = result_of(config_of(inputs, join(gcs_prefix, "first")))
    checkpoints = FromCheckpoint(checkpoints_path=join(gcs_prefix, "first/checkpoints"), optimizer_state=True)
    for name, start in (("cooled", checkpoints), ("further", FromHuggingFace(path=join(gcs_prefix, "first/hf")))):
        result = result_of(config_of(inputs, join(gcs_prefix, name), start=start, num_train_steps=3))
        assert result["loss_start"] == pytest.approx(first["loss_end"], rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("store", ["gcs", "s3"])
def test_temporary_checkpoints_are_removed_at_the_end(inputs: Any, store: str) -> None:
    """One every 0.1 s, each removed once the next is complete."""
    prefix = object_stores.gcs_prefix() if store == "gcs" else object_stores.s3_prefix()
    output = join(prefix, "clock")
    result_of(config_of(inputs, output, checkpoint_interval_s=0.1, steps_per_checkpoint=1000))
    folders = {file.name.partition("/")[0] for file in stored_files(join(output, "checkpoints"))}
    assert folders == {"eval_metrics.jsonl", f"step-{STEPS - 1}"}


@pytest.mark.long
def test_levanter_sees_what_another_process_has_removed(gcs_prefix: str) -> None:
    from marin_assets.stages.train.levanter_run.run import listings_cache_disabled

    written = join(gcs_prefix, "checkpoints/step-4/metadata.json")
    write_bytes(written, b"{}")
    with listings_cache_disabled():
        fs, path = fsspec.core.url_to_fs(written)  # as Levanter does
        assert fs.ls(path.rpartition("/")[0]) == [path]
        remove(written)
        assert not fs.exists(path)


def weights_of(output: str) -> bytes:
    return read_bytes(join(output, "hf/model.safetensors"))


def rows_of(output: str) -> list[dict[str, Any]]:
    """Without the values that depend on the clock."""
    timed = ("throughput/tokens_per_second", "throughput/duration")
    rows = read_metrics(join(output, "metrics.jsonl"))
    return [
        {name: value for name, value in row.items() if name not in timed and not name.endswith("_time")} for row in rows
    ]


def files_of(output: str) -> set[str]:
    """Without the files that TensorStore names at random."""
    return {file.name for file in stored_files(output) if "/d/" not in file.name}
