"""The exports of a model in training: each complete or not there, and written once."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.exports import export_path, is_complete, mark_complete, remove_unfinished_exports
from marin_assets.stages.train.train_lm import LlamaSpec, TrainError, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import names_in, stored_files, write_bytes
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import encode

EVERY, KILLED_AT = 4, 8
KILLED = f"""
import json, os, signal, sys
from marin_assets.stages.train.levanter_run import adaptor
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode

def mark_complete(path, as_it_is=adaptor.mark_complete):
    if path.endswith("step-{KILLED_AT:07}"):
        os.kill(os.getpid(), signal.SIGKILL)
    as_it_is(path)

adaptor.mark_complete = mark_complete
train_lm(decode(json.loads(sys.argv[1])))
"""


def config_of(inputs: Any, output: Path) -> TrainLmConfig:
    config = TrainLmConfig(
        components=inputs.components,
        tokenizer_path=inputs.tokenizer_path,
        output_path=str(output),
        model=LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1),
        num_train_steps=12,
        train_batch_size=4,
        steps_per_eval=5,
        max_eval_batches=2,
        steps_per_checkpoint=EVERY,
        steps_per_hf_export=EVERY,
        compilation_cache_dir=f"{inputs.tokenizer_path}/../jax",
    )
    return unwrap_versioned_value(config)


def test_an_export_is_complete_once_it_is_marked(disk_or_gcs_prefix: str) -> None:
    output = join(disk_or_gcs_prefix, "nano")
    assert remove_unfinished_exports(output) == []
    for step in (100, 2000):
        write_bytes(join(export_path(output, step), "config.json"), b"{}")
    mark_complete(export_path(output, 100))
    assert [is_complete(export_path(output, step)) for step in (100, 2000)] == [True, False]
    assert remove_unfinished_exports(output) == ["step-0002000"]
    assert names_in(join(output, "exports")) == ["step-0000100"]


def test_exports_that_are_no_steps_apart_are_refused(inputs: Any, tmp_path: Path) -> None:
    with pytest.raises(TrainError, match="steps_per_hf_export is 0, expected a number of steps"):
        train_lm(dataclasses.replace(config_of(inputs, tmp_path), steps_per_hf_export=0))


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # warnings of Levanter and its dependencies
def test_a_run_killed_in_an_export_writes_it_again_and_no_complete_one(inputs: Any, tmp_path: Path) -> None:
    train_lm(config_of(inputs, tmp_path / "straight"))
    config = config_of(inputs, tmp_path / "killed")
    arguments = [sys.executable, "-c", KILLED, json.dumps(encode(config))]
    killed = subprocess.run(arguments, capture_output=True, text=True, timeout=800, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    first, half = (export_path(config.output_path, step) for step in (EVERY, KILLED_AT))
    assert (is_complete(first), is_complete(half), os.path.exists(half)) == (True, False, True)
    before = stored_files(first)
    assert train_lm(config)["resumed_from_step"] == EVERY, "no checkpoint is newer than its export"
    assert stored_files(first) == before
    assert sorted(names_in(f"{config.output_path}/exports")) == sorted(names_in(f"{tmp_path}/straight/exports"))
    for step in (EVERY, KILLED_AT, 11):
        straight, resumed = (Path(export_path(str(tmp_path / run), step)) for run in ("straight", "killed"))
        assert {file.name for file in resumed.iterdir()} == {file.name for file in straight.iterdir()}
        assert (resumed / "model.safetensors").read_bytes() == (straight / "model.safetensors").read_bytes()
    assert (Path(config.output_path) / "hf/model.safetensors").read_bytes() == (
        resumed / "model.safetensors"
    ).read_bytes(), "the last export is the trained model"
