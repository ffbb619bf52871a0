"""A training with exports, and evaluations of some of them, as their steps leave them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stored_outputs_for_browsing import NOW, store_output

from marin_assets.stages.train.exports import export_path, mark_complete
from marin_resources.storage.files import write_bytes, write_json
from marin_resources.storage.paths import join

CONFIG = {"train_batch_size": 16, "num_train_steps": 400, "loop": None, "model": {"max_seq_len": 128}}
TRAIN_LM = "marin_assets.stages.train.train_lm:train_lm"


def store_training(prefix: str, name: str, steps: Iterable[int], *, status: str = "RUNNING", **config: Any) -> str:
    """A training that has exported after these steps; return its path below the prefix."""
    below = store_output(
        prefix, f"checkpoints/{name}", {}, status=status, fn_name=TRAIN_LM, config={**CONFIG, **config}
    )
    for step in steps:
        export = export_path(join(prefix, below), step)
        write_json(join(export, "config.json"), {})
        mark_complete(export)
    return below


def store_checkpoint_scores(
    prefix: str,
    training: str,
    scores: Mapping[int, Mapping[str, Any]],
    *,
    kind: str = "checkpoint_evaluation",
    version: str = "abc123",
    name: str = "",
) -> str:
    """Results by step; return the folder of the version below the prefix."""
    name = name or training.rpartition("-")[0].partition("/")[2]
    below = f"{kind}/{name}-{version}"
    for step, of in scores.items():
        store_partition(prefix, below, training, step, {"scores" if "evaluation" in kind else "sets": dict(of)})
    return below


def store_partition(
    prefix: str, below: str, training: str, step: int, result: Mapping[str, Any], *, status: str = "SUCCESS"
) -> None:
    path = join(prefix, below, f"step-{step:07}")
    record = {
        "format_version": 1,
        "name": below.rpartition("-")[0],
        "prefix": prefix,
        "output_path": path,
        "partition": f"step-{step:07}",
        "config": {"model_path": export_path(join(prefix, training), step)},
        "result": dict(result),
    }
    write_json(join(path, ".executor_info"), record)
    write_bytes(join(path, ".executor_status"), status.encode())
    if status == "SUCCESS":
        write_bytes(join(prefix, ".marin/done", below, f"step-{step:07}.0123456789abcdef.3.100.{NOW + step}"), b"")


def learning_curve(tasks: Sequence[str], steps: Iterable[int], *, seed: int = 0) -> dict[int, dict[str, Any]]:
    """Accuracies that rise, with noise."""
    drawn = random.Random(seed)
    return {
        step: {
            task: {
                "instances": 400,
                "acc": min(max(0.25 + 0.1 * math.log10(1 + step) + drawn.gauss(0, 0.02), 0), 1),
                "acc_stderr": 0.02,
                "chance": 0.25,
            }
            for task in tasks
        }
        for step in steps
    }
