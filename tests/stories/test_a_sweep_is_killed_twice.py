"""An isoflop sweep that is killed twice with SIGKILL has the table of one that ran through, to the last byte."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from running import start_script, wait_until

from marin_assets.documents import Document, write_documents
from marin_assets.stages.train.checkpoints import last_checkpoint_step

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

SCRIPT = """
from marin_assets import InputName, executor_main, versioned
from marin_assets.defaults import default_scaling_runs, default_tokenize, default_tokenizer, isoflop
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.train_lm import LlamaSpec

pages = InputName.hardcoded({documents!r})
tokenizer = default_tokenizer("swept", pages, vocab_size=512, validation_fraction=0.1)
tokens = default_tokenize("swept", pages, tokenizer, validation_fraction=0.1)
sizes = {{
    str(width): LlamaSpec(
        max_seq_len=versioned(64),
        hidden_dim=versioned(width),
        num_layers=versioned(1),
        num_heads=versioned(width // 32),
    )
    for width in (32, 64)
}}
runs = isoflop(
    "swept", tokens, [4e9, 1e10], sizes, vocab_size=512,
    train_config=SimpleTrainConfig(
        train_batch_size=1, num_train_steps=2, learning_rate=1e-3, precision="p=f32,c=f32", steps_per_checkpoint=5,
        steps_per_eval=1000, max_eval_batches=4,
    ),
)
executor_main([default_scaling_runs("swept", runs)])
"""


def test_the_table_is_that_of_a_sweep_that_was_not_killed(tmp_path: Path) -> None:
    pages = tmp_path / "documents"
    write_documents(f"{pages}/a.jsonl.zst", [Document(id=name, text=text) for name, text in sorted(topics.items())])
    script = tmp_path / "sweep.py"
    script.write_text(SCRIPT.format(documents=str(pages)))
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    finish(script, straight)
    for begun in (1, 3):
        kill_in_training(script, killed, trainings=begun)
    finish(script, killed)
    [expected], [found] = (list(prefix.glob("runs/swept-*/runs.csv")) for prefix in (straight, killed))
    assert len(expected.read_text().splitlines()) == 5
    assert found.read_bytes() == expected.read_bytes()
    records = [json.loads(path.read_text()) for path in killed.glob("checkpoints/swept/*/.executor_info")]
    assert any(record["result"]["resumed_from_step"] is not None for record in records), "a training was killed"


def environment(prefix: Path) -> dict[str, str]:
    return {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(prefix.parent / "dagster")}


def finish(script: Path, prefix: Path) -> str:
    run = start_script(script, env=environment(prefix))
    output, _ = run.communicate(timeout=1800)
    assert run.returncode == 0, output[-3000:]
    return output


def kill_in_training(script: Path, prefix: Path, *, trainings: int) -> None:
    """Kill the run when so many of its trainings have a checkpoint."""
    run = start_script(script, env=environment(prefix))

    def are_begun() -> bool:
        assert run.poll() is None, run.communicate()[0][-3000:]
        outputs = prefix.glob("checkpoints/swept/*/checkpoints")
        return sum(last_checkpoint_step(str(folder)) is not None for folder in outputs) >= trainings

    wait_until(are_begun, f"{trainings} trainings with a checkpoint", 1200)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
