"""Trainings on rewards as they leave their outputs: finished, under way, older, with rollouts of two lessons."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from random_llama import write_tokenizer
from stored_outputs_for_browsing import store_output
from tokenizers import Tokenizer

from marin_assets.stages.train.rl.measures.passes import measures_of
from marin_assets.stages.train.rl.rollout import Rollout, combine_steps, unused, write_step
from marin_assets.stages.train.rl.trainer.loop import rewards_of
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

TRAIN_RL = "marin_assets.stages.train.rl.train_rl:train_rl"
GROUPS, SIZE, STEPS = 3, 4, 12
REPLY = " (go on)"
TEXTS = ["Sum of three and four:", " seven", REPLY, " eight of them"] * 20


@lru_cache(1)
def tokenizer_file() -> bytes:
    """A tokenizer of a few hundred tokens."""
    with tempfile.TemporaryDirectory() as folder:
        write_tokenizer(Path(folder), TEXTS, 300)
        return (Path(folder) / "tokenizer.json").read_bytes()


def store_reward_training(
    prefix: str,
    *,
    name: str = "words",
    status: str = "SUCCESS",
    steps: int = STEPS,
    is_combined: bool = True,
    has_record: bool = True,
    changes: Callable[[int], Mapping[str, float]] = lambda step: {},
    is_old: bool = False,
) -> str:
    """Write an output below the prefix, and return its path there. `changes`: further metrics of a step."""
    tokenizer_path = join(prefix, "tokenizers/words-abc123")
    write_bytes(join(tokenizer_path, "tokenizer.json"), tokenizer_file())
    tokenizer = Tokenizer.from_buffer(tokenizer_file())
    config = {"num_train_steps": STEPS, "tokenizer_path": tokenizer_path} if has_record else {}
    below = store_output(
        prefix, f"checkpoints/{name}", {}, status=status, config=config, fn_name=TRAIN_RL if has_record else ""
    )
    path, lines = join(prefix, below), []
    for step in range(steps):
        rollouts = rollouts_of(step, tokenizer)
        write_step(path, step, rollouts)
        measured = {} if is_old else measures_of(step, rollouts)
        row = {"step": step, **rewards_of(rollouts), **measured, **metrics_of(step), **changes(step)}
        lines.append(json.dumps(row).encode() + b"\n")
    write_bytes(join(path, "metrics.jsonl"), b"".join(lines))
    if is_combined:
        combine_steps(path, steps)
    return below


def rollouts_of(step: int, tokenizer: Any) -> list[Rollout]:
    """Groups of the lessons "calls", whose answers have a reply, "held_out", which is not trained, and "sums"."""
    rollouts = []
    for group, lesson in enumerate(("calls", "held_out", "sums")):
        for member in range(SIZE):
            rollout = _rollout(step, group, member, lesson, tokenizer)
            if lesson == "held_out":
                rollout = unused(rollout, "not_trained")
            elif lesson == "sums" and member == 3 and step % 2:
                rollout = unused(rollout, "reward_raised", "KeyError: 'sum'")
            rollouts.append(rollout)
    return rollouts


def metrics_of(step: int) -> dict[str, float]:
    return {
        "train/entropy": 3.0 / (1 + step),
        "train/k3_of_sampler": 0.01,
        "train/ratio_mean": 1.0,
        "train/ratio_max": 1.5,
        "train/bound_share": 0.02,
        "train/mismatch_max": 0.1,
        "rl/staleness": float(min(step, 1)),
        "rl/answer_tokens": 4.0,
        "rl/truncated_share": 0.25,
        "rl/groups_without_variance": 1.0,
        "rl/rollouts_unused": 4.0,
        "rl/wait_share": 0.4,
        "rl/samplers_wait_share": 0.05,
        "rl/drawn_tokens_per_second": 900.0,
        "throughput/tokens_per_second": 800.0,
    }


def _rollout(step: int, group: int, member: int, lesson: str, tokenizer: Any) -> Rollout:
    parts = [(" seven", 1), (REPLY, 0), (" eight of them", 1)] if lesson == "calls" else [(" seven", 1)]
    ids, mask = [], []
    for text, is_drawn in parts:
        encoded = tokenizer.encode(text, add_special_tokens=False).ids
        ids += encoded
        mask += [is_drawn] * len(encoded)
    has_reward = not (lesson == "sums" and member == 3 and step % 2)
    return Rollout(
        id=f"{step:07}-{group:04}-{member:04}",
        step=step,
        group=group,
        member=member,
        lesson=lesson,
        weights_step=max(step - 1, 0),
        weights_digest="ab" * 32,
        example={"a": 3, "b": step},
        prompt="Sum of three and four:",
        answer="".join(text for text, _ in parts),
        prompt_ids=tokenizer.encode("Sum of three and four:", add_special_tokens=False).ids,
        ids=ids,
        logprobs=[-0.05 - 2 * number if drawn else 0.0 for number, drawn in enumerate(mask)],
        mask=mask,
        finish="length" if member == 0 else "stop",
        reward=member * step / STEPS if has_reward else None,
    )
