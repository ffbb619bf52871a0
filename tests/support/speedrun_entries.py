"""Entries of speedruns in Marin's form, and trainings on record, as tests need them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from marin_assets.stages.report.speedruns.entry import MARINS_METRIC, Entry, results_file

PEAK = 459e12
"""Operations a second of a chip of v5p."""
SIZES = {"130m": (154_147_328, 2.6e9), "300m": (299_649_792, 6e9), "520m": (602_457_088, 12e9), "1_2b": (1.43e9, 28e9)}
"""Size -> parameters, tokens."""
STEP_TOKENS = 16 * 128


def run_info(**changes: Any) -> dict[str, Any]:
    """The fields of an entry on a v5p-32, all of which fit; those that are changed may not."""
    tokens, per_token, time_s = 2_599_944_192, 227_868_672.0, 1595.0118
    return {
        "author": {"name": "Ada", "affiliation": "", "url": ""},
        "description": "AdamC at a rate of 1e-2.",
        "model_config": {"hidden_dim": 512, "max_seq_len": 4096},
        "train_config": {"num_train_steps": 4959, "train_batch_size": 128, "train_seq_len": 4096},
        "tokenized_dataset": "gs://bucket/tokenized/fineweb-edu-10B-ac65f6",
        "resources": {"device": {"kind": "tpu", "variant": "v5p-32"}},
        "model_size": 154_147_328,
        "total_tokens": tokens,
        "model_flops": 3 * per_token * tokens,
        "model_flops_per_token": per_token,
        "num_devices": 16,
        "num_chips": 16,
        "device_flops": PEAK,
        "training_time": time_s,
        "training_hardware_flops": time_s * 16 * PEAK,
        MARINS_METRIC: 1.1805,
        "run_completion_timestamp": "2026-04-10 03:06:30 UTC",
        "wandb_run_link": None,
        **changes,
    }


def measured(flops: float, value: float, **changes: Any) -> dict[str, Any]:
    """An entry with these model FLOPs and this value, which fits otherwise."""
    tokens = round(flops / 1e9)
    hardware = changes.pop("hardware_flops", 4 * flops)
    return run_info(
        model_flops=flops,
        model_flops_per_token=flops / 3 / tokens,
        model_size=10**8,
        total_tokens=tokens,
        train_config={},
        training_time=hardware / 16 / PEAK,
        training_hardware_flops=hardware,
        **{MARINS_METRIC: value},
        **changes,
    )


def entry(name: str, flops: float, value: float, **changes: Any) -> Entry:
    return Entry(name=name, info=measured(flops, value, **changes))


def marins_folder(folder: Path, runs: int = 96) -> dict[str, dict[str, Any]]:
    """Write as many entries as Marin's leaderboard has, as its repository has them: a recipe is a folder, and a size
    one below it. Return them by name."""
    infos = {}
    for number in range(runs):
        recipe, size = f"recipe_{number // 4:02}", list(SIZES)[number % 4]
        parameters, tokens = SIZES[size]
        per_token = 2 * parameters * (1 + number / 1000)
        loss = 0.7 + 300 * (6 * parameters * tokens) ** -0.153 * (1 - 0.001 * (number // 4))
        time_s = 3 * per_token * tokens / 16 / PEAK / 0.3
        infos[f"{recipe}/{size}"] = run_info(
            model_size=int(parameters),
            total_tokens=int(tokens),
            train_config={},
            model_flops_per_token=per_token,
            model_flops=3 * per_token * int(tokens),
            training_time=time_s,
            training_hardware_flops=time_s * 16 * PEAK,
            **{MARINS_METRIC: loss},
        )
    for name, info in infos.items():
        write_results(folder / name, [info])
    return infos


def write_results(folder: Path, infos: Iterable[Mapping[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "speedrun_results.json"
    file.write_bytes(results_file(infos))
    return file


def training_rows(steps: int = 10, *, duration_s: float = 2.0, first: int = 2, **fields: Any) -> list[dict[str, Any]]:
    """The rows of a training's metrics: Levanter logs nothing of the first two steps. A model of 1 GFLOP a token."""
    rows: list[dict[str, Any]] = [{"step": -1, "eval/bpb": 3.0, "eval/loss": 8.0}]
    for step in range(first, steps):
        tokens = (step + 1) * STEP_TOKENS
        rows.append(
            {
                "step": step,
                "train/loss": 4.0,
                "throughput/duration": duration_s,
                "throughput/loading_time": 50.0,
                "throughput/hook_time": 70.0,
                "throughput/total_tokens": float(tokens),
                "throughput/total_gflops": float(tokens) * 3,
                **fields,
            }
        )
    rows[-1] |= {"eval/bpb": 1.25, "eval/prose/bpb": 1.5, "eval/loss": 3.5}
    return rows


def store_training(
    prefix: Path, name: str = "checkpoints/nano", rows: list[dict[str, Any]] | None = None, **record: Any
) -> str:
    """Write the output of a training: its record and its metrics. Return its path."""
    path = prefix / f"{name}-abc123"
    path.mkdir(parents=True)
    rows = training_rows() if rows is None else rows
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    steps = max(row["step"] for row in rows) + 1
    result = {
        "steps": steps,
        "parameters": 10**8,
        "tokens_seen": steps * STEP_TOKENS,
        "loss_end": rows[-1].get("eval/loss"),
        "resumed_from_step": None,
        "links": {},
        **record.pop("result", {}),
    }
    config = {
        "components": {"prose": f"{prefix}/tokenized/prose-123456"},
        "tokenizer_path": f"{prefix}/tokenizers/t-123456",
        "output_path": str(path),
        "model": {"hidden_dim": 64, "max_seq_len": 128},
        "num_train_steps": steps,
        "train_batch_size": 16,
        "loop": None,
        "steps_per_hf_export": None,
        **record.pop("config", {}),
    }
    fields = {
        "name": name,
        "prefix": str(prefix),
        "output_path": str(path),
        "config": config,
        "result": result,
        "finished_at": "2026-11-28T02:41:07.123456+00:00",
        **record,
    }
    (path / ".executor_info").write_text(json.dumps(fields))
    return str(path)
