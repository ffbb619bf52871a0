"""A training that exports a model when a test allows it, and the evaluation of its exports."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from marin_assets import THIS_OUTPUT_PATH, Step, dynamic, output_path_of
from marin_assets.stages.train.exports import export_path, mark_complete
from marin_resources.storage.files import read_json, write_json
from marin_resources.storage.paths import join

STEPS = (100, 200, 300)
CALLS = "evaluated.txt"


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    folder: str
    """Where the test allows exports."""
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    model_path: str
    folder: str
    output_path: str = THIS_OUTPUT_PATH


def train(config: TrainingConfig) -> dict[str, int]:
    for step in STEPS:
        while not _allowed(config.folder, step).exists():
            time.sleep(0.02)
        export = export_path(config.output_path, step)
        write_json(join(export, "config.json"), {"step": step})
        mark_complete(export)
    return {"steps": STEPS[-1]}


def evaluate(config: EvaluationConfig) -> dict[str, float]:
    step = read_json(join(config.model_path, "config.json"))["step"]
    with Path(config.folder, CALLS).open("a") as calls:
        calls.write(f"step-{step:07}\n")
    return {"accuracy": step / 1000}


def watched(folder: str) -> list[Step]:
    """The training "checkpoints/toy" and the evaluation of its exports, at the keys of dynamic("toy")."""
    training = Step(name="checkpoints/toy", fn=train, config=TrainingConfig(folder=folder))
    model = output_path_of(training, "exports/{partition}").nonblocking()
    config = EvaluationConfig(model_path=model, folder=folder)
    return [
        training,
        Step(name="checkpoint_evaluation/toy", fn=evaluate, config=config, partitions=dynamic("toy")),
    ]


def allow(folder: Path, step: int) -> None:
    """Let the training come to the step."""
    _allowed(str(folder), step).touch()


def evaluated(folder: Path) -> list[str]:
    """The exports of all calls of the evaluation, sorted."""
    return sorted((folder / CALLS).read_text().split())


def _allowed(folder: str, step: int) -> Path:
    return Path(folder, f"step {step} is allowed")
