"""One training on two hosts: two processes, one jax.distributed job, as on a slice; the devices are CPUs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from running import wait_until

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.step_api.hosts import ACCELERATOR, COORDINATOR, COUNT, INDEX
from marin_resources.wire.config_json import encode

STEPS = 30
RUN = """
import json, os, sys
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode
print("RESULT", json.dumps(train_lm(decode(json.loads(sys.argv[1])))), flush=True)
"""
TINY = LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


def config_of(inputs: Any, output: Path, **changes: Any) -> str:
    settings = {
        "components": inputs.components,
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": TINY,
        "num_train_steps": STEPS,
        "train_batch_size": 4,
        "steps_per_eval": 10,
        "max_eval_batches": 2,
        "checkpoint_interval_s": 0.5,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    return json.dumps(encode(unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))))


def start(config: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, config],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start_hosts(config: str) -> list[subprocess.Popen[str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    return [start(config, **{INDEX: str(index), COUNT: "2", COORDINATOR: address}) for index in (0, 1)]


def results(processes: Sequence[subprocess.Popen[str]]) -> list[Any]:
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return [json.loads(text.rpartition("RESULT ")[2].splitlines()[0]) for text in outputs]


def losses(output: Path) -> dict[int, float]:
    return {
        row["step"]: row["train/loss"] for row in read_metrics(str(output / "metrics.jsonl")) if "train/loss" in row
    }


def test_two_hosts_train_what_one_process_does(inputs: Any, tmp_path: Path) -> None:
    two, one = tmp_path / "two", tmp_path / "one"
    first, second = results(start_hosts(config_of(inputs, two)))
    (alone,) = results([start(config_of(inputs, one), XLA_FLAGS="--xla_force_host_platform_device_count=2")])
    assert second == {}
    assert losses(two) == pytest.approx(losses(one), abs=1e-5)
    assert first["loss_end"] == pytest.approx(alone["loss_end"], abs=1e-5)
    assert first["loss_start"] == pytest.approx(alone["loss_start"], abs=1e-5)
    assert (two / "hf/model.safetensors").exists()
    assert (two / "plots/loss.png").exists()


def test_two_hosts_of_which_one_is_killed_go_on_from_the_last_checkpoint(inputs: Any, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    results(start_hosts(config_of(inputs, whole)))
    hosts = start_hosts(config_of(inputs, killed, num_train_steps=STEPS))
    checkpoints = killed / "checkpoints"
    wait_until(lambda: list(checkpoints.glob("step-*/metadata.json")), "a checkpoint", 120)
    for host in hosts:
        host.kill()
        host.wait()
    first, _ = results(start_hosts(config_of(inputs, killed)))
    assert first["resumed_from_step"] is not None
    assert losses(killed) == pytest.approx(losses(whole), abs=1e-5)


def test_a_step_that_requests_a_tpu_and_finds_none_is_refused(inputs: Any, tmp_path: Path) -> None:
    process = start(config_of(inputs, tmp_path / "x"), **{ACCELERATOR: "tpu"})
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "The step requests a TPU, and jax finds only 'cpu' on this host. Check that" in output
