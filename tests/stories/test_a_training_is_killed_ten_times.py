"""A training that is killed at ten drawn moments, and at the worst ones, has every loss of one that was not."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest

from marin_assets.documents import Document, write_documents
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

STEPS, KILLS, SEED = 240, 10, 21
KILLED = -9
RUN = """
import json, os, signal, sys
from marin_assets.stages.train import train_lm
from marin_resources.wire.config_json import decode

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

at = sys.argv[2]
if at == "during the removal of a checkpoint":
    from marin_assets.stages.train import checkpoints
    checkpoints.remove_folder = die
elif at == "between two writes of a checkpoint":
    import levanter.checkpoint
    levanter.checkpoint._save_metadata = die
elif at == "during the export":
    from levanter.compat import hf_checkpoints
    hf_checkpoints._save_tokenizer_pretrained = die
print("RESULT", json.dumps(train_lm.train_lm(decode(json.loads(sys.argv[1])))))
"""


def test_every_later_loss_is_the_same(tmp_path: Path) -> None:
    straight, killed = (config_of(tmp_path, name) for name in ("straight", "killed"))
    expected = finish(straight)
    drawn = random.Random(SEED)
    for moment in ("during the removal of a checkpoint", "between two writes of a checkpoint"):
        assert start(killed, moment).wait(600) == KILLED, moment
    for rows in sorted(drawn.sample(range(STEPS), KILLS)):
        kill_when(start(killed, ""), killed, rows=rows, after_s=drawn.random() / 5)
    assert start(killed, "during the export").wait(600) == KILLED
    found = finish(killed)
    same = ("loss_start", "loss_end", "train_loss_end", "steps", "parameters")
    assert {name: found[name] for name in same} == {name: pytest.approx(expected[name], rel=1e-5) for name in same}
    assert losses_of(killed) == losses_of(straight)
    assert checkpoints_of(killed) == checkpoints_of(straight) == ["step-100", "step-200", "step-220", "step-239"]
    assert export_of(killed) == export_of(straight)


def config_of(folder: Path, name: str) -> TrainLmConfig:
    tokenizer, cache = f"{folder}/tokenizer", f"{folder}/cache"
    if not Path(cache).exists():
        pages = [Document(id=name, text=text) for name, text in sorted(topics.items())]
        write_documents(f"{folder}/documents/a.jsonl.zst", pages)
        train_tokenizer(
            unwrap_versioned_value(
                TrainTokenizerConfig(documents_path=f"{folder}/documents", output_path=tokenizer, vocab_size=512)
            )
        )
        made = TokenizeConfig(documents_path=f"{folder}/documents", tokenizer_path=tokenizer, output_path=cache)
        tokenize(unwrap_versioned_value(made))
    config = TrainLmConfig(
        components={"topics": cache},
        tokenizer_path=tokenizer,
        output_path=f"{folder}/{name}",
        model=LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1),
        num_train_steps=STEPS,
        train_batch_size=4,
        steps_per_eval=20,
        max_eval_batches=2,
        steps_per_checkpoint=20,
        keep_last_checkpoints=2,
        keep_checkpoints_every=100,
        checkpoint_interval_s=0.2,
        compilation_cache_dir=f"{folder}/jax",
    )
    return unwrap_versioned_value(config)  # type: ignore[no-any-return]


def start(config: TrainLmConfig, moment: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", RUN, json.dumps(encode(config)), moment]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ)


def finish(config: TrainLmConfig) -> dict[str, Any]:
    out, _ = start(config, "").communicate(timeout=600)
    found: dict[str, Any] = json.loads(out.rpartition("RESULT ")[2])
    return found


def kill_when(process: subprocess.Popen[str], config: TrainLmConfig, *, rows: int, after_s: float) -> None:
    """When the metrics have so many rows, or when the process ends by itself, and then a drawn time later."""
    metrics = Path(config.output_path, "metrics.jsonl")
    before = metrics.stat().st_mtime_ns
    while process.poll() is None:
        is_new = metrics.stat().st_mtime_ns != before
        if is_new and metrics.read_bytes().count(b"\n") >= rows:
            break
        time.sleep(0.005)
    time.sleep(after_s)
    process.kill()
    process.wait()


def losses_of(config: TrainLmConfig) -> list[tuple[int, float | None, float | None]]:
    rows = read_metrics(f"{config.output_path}/metrics.jsonl")
    return [(row["step"], row.get("train/loss"), row.get("eval/loss")) for row in rows]


def checkpoints_of(config: TrainLmConfig) -> list[str]:
    names = (path.name for path in Path(config.output_path, "checkpoints").iterdir() if path.is_dir())
    return sorted(names, key=lambda name: int(name.removeprefix("step-")))


def export_of(config: TrainLmConfig) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(config.output_path, "hf").iterdir())}
