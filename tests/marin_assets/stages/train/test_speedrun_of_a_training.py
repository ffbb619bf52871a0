"""The speedrun entry of a real training, that was killed, resumed, and read on its own outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nano_training import kill_at, nano_config

from marin_assets.stages.report.speedruns.speedrun import Author, WriteSpeedrunConfig, write_speedrun
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.train_lm import train_lm
from marin_assets.step.values import unwrap_versioned_value

STEPS = 12

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.long]  # warnings of Levanter and its dependencies


def entry_of(training: Path, result: dict[str, Any], output: Path, **record: Any) -> Any:
    record |= {"name": "checkpoints/nano", "result": result}
    record |= {"prefix": str(training.parent), "output_path": str(training), "finished_at": "2026-11-28T02:41:07+00:00"}
    (training / ".executor_info").write_text(json.dumps(record))
    entry = WriteSpeedrunConfig(
        training_path=str(training), author=Author(name="Ada"), description="Nano.", output_path=str(output)
    )
    write_speedrun(unwrap_versioned_value(entry))
    return json.loads((output / "speedrun_results.json").read_text())["runs"][0]["run_info"]


def test_a_training_that_was_killed_has_each_step_once_and_the_numbers_of_one_that_was_not(
    inputs: Any, tmp_path: Path
) -> None:
    changes = {"components": inputs.components, "num_train_steps": STEPS, "train_batch_size": 4, "steps_per_eval": 5}
    changes |= {"max_eval_batches": 1, "steps_per_checkpoint": 4}
    entries = []
    for name in ("straight", "killed"):
        output = tmp_path / f"checkpoints/{name}-abc123"
        config = nano_config(TrainLmConfig, inputs, output, 1e-3, **changes)
        if name == "killed":
            kill_at("marin_assets.stages.train.train_lm:train_lm", config, 9)
        result = train_lm(config)
        spent = {"attempts": 1, "unknown_attempts": int(name == "killed"), "wall_s": 1.0}
        entries.append(entry_of(output, result, tmp_path / name, spent=spent))
        rows = [row for row in read_metrics(f"{output}/metrics.jsonl") if "throughput/duration" in row]
        assert entries[-1]["timed_steps"] == len(rows) == len({row["step"] for row in rows})
        assert entries[-1]["training_time"] == pytest.approx(sum(row["throughput/duration"] for row in rows))
        assert entries[-1]["total_tokens"] == STEPS * 4 * 64
    straight, killed = entries
    for field in ("eval/bpb", "total_tokens", "model_size"):
        assert killed[field] == straight[field]
    assert killed["model_flops"] == pytest.approx(straight["model_flops"], rel=1e-12)
    assert straight["model_flops"] == pytest.approx(3 * straight["model_flops_per_token"] * straight["total_tokens"])
    assert (straight["starts"], killed["starts"], straight["resumed_from_step"]) == (1, 2, None)
    assert killed["resumed_from_step"] in (4, 8)
    assert straight["training_hardware_flops"] is None
    assert straight["notes"][0].startswith("No peak of the device 'cpu' is on record")
