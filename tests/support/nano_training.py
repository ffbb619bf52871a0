"""Configs of trainings that take seconds, and what came out of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

from marin_assets.stages.train.config import LlamaSpec, OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

WINDOW = 64
KILLED = """
import importlib, json, os, signal, sys
from marin_assets.stages.train.metrics.metrics import MetricsFile
from marin_resources.wire.config_json import decode

module, _, name = sys.argv[1].partition(":")
killed_at = int(sys.argv[2])

def add(self, step, metrics, as_it_is=MetricsFile.add):
    if step == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    as_it_is(self, step, metrics)

MetricsFile.add = add
getattr(importlib.import_module(module), name)(decode(json.loads(sys.argv[3])))
"""
C = TypeVar("C", bound=TrainLmConfig)


def nano_config(kind: type[C], inputs: Any, output: Path, learning_rate: float, **changes: Any) -> C:
    settings = {
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": LlamaSpec(max_seq_len=WINDOW),
        "optimizer": OptimizerSpec(learning_rate=learning_rate, warmup=0.05),
        "steps_per_eval": 50,
        "max_eval_batches": 8,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    config: C = unwrap_versioned_value(kind(**{**settings, **changes}))
    return config


def kill_at(fn: str, config: TrainLmConfig, step: int) -> None:
    """Run `fn` ("module:name") in a process that is killed when it logs the metrics of `step`."""
    arguments = [sys.executable, "-c", KILLED, fn, str(step), json.dumps(encode(config))]
    killed = subprocess.run(arguments, capture_output=True, text=True, timeout=800, check=False, env=os.environ)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]


def weights_of(output: str | Path, folder: str = "hf/model.safetensors") -> bytes:
    return (Path(output) / folder).read_bytes()


def losses_of(output: str | Path) -> list[tuple[Any, ...]]:
    """Step, loss and evaluations of each row, without what depends on the clock."""
    rows = read_metrics(f"{output}/metrics.jsonl")
    return [
        (row["step"], *(v for k, v in sorted(row.items()) if k.startswith(("train/", "eval/")) and "_time" not in k))
        for row in rows
    ]


def answers_of(folder: Path, questions: list[str]) -> list[str]:
    """Greedy answers of an export, with the chat template that it has."""
    from marin_assets.inference.jax_model import load_model  # jax takes 3 s to import
    from marin_assets.stages.evaluate.sample_text import sample_text

    model, tokenizer = load_model(str(folder))
    prompts = [tokenizer.render_chat([{"role": "user", "content": q}]) for q in questions]
    texts = (
        sample_text(model, tokenizer, prompt.removeprefix("<|bos|>"), max_tokens=4, temperature=0) for prompt in prompts
    )
    return ["".join(text).strip() for text in texts]
