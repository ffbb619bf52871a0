"""Reinforcement learning that takes seconds, and what came out of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from random_llama import write_random_llama
from rl_environments import Turns

from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.rollout import FOLDER
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import names_in, read_bytes
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import encode

END_TOKENS = (",", ".", "Ċ")
WINDOW, EOS = 64, 1
KILLED = """
import json, logging, sys
sys.path[:0] = json.loads(sys.argv[1])
from drawn_kills import Moments
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_resources.storage import fault_points
from marin_resources.wire.config_json import decode

config = decode(json.loads(sys.argv[2]))
moments = Moments(config.output_path, int(sys.argv[3]) or None)
fault_points.reach = moments.reach
sys.addaudithook(moments.heard)
logging.getLogger("marin_assets.stages.train.rl.orders.order").addHandler(logging.StreamHandler())
train_rl(config)
print("moments", moments.count)
"""


def write_ending_llama(folder: Path, **shape: int) -> str:
    """Write a model of random weights, which ends an answer at each comma, full stop or end of a line. Returns its
    folder. `shape` is that of write_random_llama."""
    hf = folder / "hf"
    hf.mkdir()
    write_random_llama(hf, list(topics.values())[:50], WINDOW, **shape)
    vocabulary = json.loads((hf / "tokenizer.json").read_text())["model"]["vocab"]
    ends = {"eos_token_id": [EOS, *(vocabulary[text] for text in END_TOKENS)]}
    (hf / "generation_config.json").write_text(json.dumps(ends))
    return str(hf)


def rl_config(model: str, output: Path, **changes: Any) -> TrainRlConfig:
    """Six steps of two lessons, one of them in several turns, with weights that are a step old."""
    settings: dict[str, Any] = {
        "start": FromHuggingFace(path=model),
        "tokenizer_path": model,
        "output_path": str(output),
        "lessons": {"the": lesson_of(TargetWord()), "turns": lesson_of(Turns())},
        "num_train_steps": 6,
        "groups": 4,
        "group_size": 4,
        "groups_per_unit": 2,
        "staleness": 1,
        "temperature": 0.7,
        "max_tokens": 12,
        "max_length": 48,
        "optimizer": adam(1e-3),
        "compilation_cache_dir": f"{model}/../jax-of-rl",
    }
    config: TrainRlConfig = unwrap_versioned_value(TrainRlConfig(**{**settings, **changes}))
    return config


def adam(learning_rate: float) -> NamedOptimizerSpec:
    return NamedOptimizerSpec(learning_rate=learning_rate, warmup=0.0, lr_schedule="constant", weight_decay=0.0)


def results_of(output: str | Path) -> tuple[str, str]:
    """Digests of the trained weights, and of all rollouts."""
    weights = read_bytes(join(str(output), "hf/model.safetensors"))
    names = sorted(name for name in names_in(join(str(output), FOLDER)) if not name.startswith("."))
    tables = b"".join(read_bytes(join(str(output), FOLDER, name)) for name in names)
    return hashlib.sha256(weights).hexdigest(), hashlib.sha256(tables).hexdigest()


def run_to(config: TrainRlConfig, *, kill_at: int = 0) -> int | None:
    """Train in a process of its own, which is killed at a moment of its output if that is not 0. Returns the number of
    moments; None if it was killed. Its weights are those that an earlier attempt had."""
    paths = json.dumps([path for path in sys.path if path])
    arguments = [sys.executable, "-c", KILLED, paths, json.dumps(encode(config)), str(kill_at)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=900, check=False, env=os.environ)
    assert "are others than an earlier attempt had" not in done.stderr
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.split("moments ")[1])


def samplers_below(process: int) -> list[int]:
    """The ids of the processes of samplers that a process has started; not those of environments, which they start."""
    parents, commands = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
                commands[int(folder.name)] = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])

    def above(pid: int) -> list[int]:
        chain = []
        while (pid := parents.get(pid, 0)) > 1:
            chain.append(pid)
        return chain

    serving = [pid for pid, command in commands.items() if b"object_process import serve" in command]
    return [pid for pid in serving if process in above(pid) and not set(above(pid)) & set(serving)]
