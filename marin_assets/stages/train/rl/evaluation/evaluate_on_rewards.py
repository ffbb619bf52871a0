"""Evaluate a model on environments: it answers examples that no training draws, and their rewards are the scores.

In:  the folder of a Hugging Face export; environments (`environments/environment.py`).
Out: `scores.csv`, a row for each metric of each lesson; `samples.jsonl`, a row for each example with its answers;
     `rollouts/`, every answer with its tokens and its reward: documents, as those of a training.
     units/ exists while it runs.

The scores are a function of the config and of the weights. A killed evaluation resumes after the units that are whole.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from marin_assets.documents.scores import as_csv
from marin_assets.inference.local_copy import copy_to_local
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.evaluation.config import RlEvalConfig, check_fields
from marin_assets.stages.train.rl.evaluation.scores import rows_of, scores_of, table_of, was_prompted
from marin_assets.stages.train.rl.plan import EXAMPLES, PlannedGroup, Unit
from marin_assets.stages.train.rl.rollout import Rollout, count_rollouts, write_step
from marin_assets.stages.train.rl.sampling.environment_process import EnvironmentProcess
from marin_assets.stages.train.rl.sampling.sampler import UNITS, DamagedUnitError, read_unit, unit_path, write_unit
from marin_resources.step_api.hosts import host_count
from marin_resources.storage.files import exists, open_atomic, remove_folder, write_bytes
from marin_resources.storage.paths import join

KINDS = ("jax",)
SAMPLES = "samples.jsonl"
OF_THE_MODEL = (".safetensors", "config.json", "tokenizer.json")
"""Ends of the files of an export that decide its answers."""

log = logging.getLogger(__name__)


def evaluate_on_rewards(config: RlEvalConfig) -> dict[str, Any]:
    """Evaluate a model on environments.

    Returns scores by lesson: instances (examples), reward, pass@1 and pass@k, each with its standard error and the
    bounds of its 95% confidence interval; and the counts of answers as `train_rl`: of those with an error of the
    environment, the ones that were graded count as 0, and examples without a prompt are left out. Raises
    TrainError for an invalid config, a folder without a model, an environment that cannot be opened, and a lesson none
    of whose examples has a prompt.
    """
    check_fields(config)
    if host_count() > 1:
        raise TrainError("This evaluates on one host, and the step has several. Request a slice of one host.")
    if not exists(join(config.model_path, "config.json")):
        raise TrainError(
            f"{config.model_path!r} has no 'config.json', expected the folder of a Hugging Face export. Pass for "
            "example 'hf' below a training step's output."
        )
    rollouts = _sample(config)
    _require_prompts(config, rollouts)
    rows = rows_of(config, rollouts)
    scores = scores_of(config, rows)
    write_step(config.output_path, 0, rollouts)
    write_bytes(join(config.output_path, "scores.csv"), as_csv(table_of(scores)))
    with open_atomic(join(config.output_path, SAMPLES)) as file:
        file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    with suppress(FileNotFoundError):  # a bucket has no empty folders
        remove_folder(join(config.output_path, UNITS))
    return {"lessons": len(scores), "examples": len(rows), **count_rollouts(rollouts), "scores": scores}


def units_of(config: RlEvalConfig) -> list[Unit]:
    """The units of an evaluation, lesson by lesson."""
    units: list[Unit] = []
    for place, lesson in enumerate(sorted(config.lessons)):
        groups = [_group(config, lesson, place, number) for number in range(config.examples)]
        for first in range(0, len(groups), config.examples_per_unit):
            of_unit = tuple(groups[first : first + config.examples_per_unit])
            units.append(Unit(step=0, number=len(units), weights_step=0, groups=of_unit))
    return units


def _group(config: RlEvalConfig, lesson: str, place: int, number: int) -> PlannedGroup:
    draw = random.Random(f"{config.seed} {lesson} {number}")
    return PlannedGroup(
        number=place * config.examples + number,
        lesson=lesson,
        index=EXAMPLES + number,
        seeds=tuple(draw.randrange(2**62) for _ in range(config.samples)),
    )


def _sample(config: RlEvalConfig) -> list[Rollout]:
    """All answers, of which those of an earlier attempt are not drawn again."""
    with (
        tempfile.TemporaryDirectory(prefix="rl-evaluation-") as folder,
        EnvironmentProcess(config.lessons, timeout_s=config.method_timeout_s) as environments,
    ):
        from marin_assets.inference.decoder import Decoder  # jax and Levanter take 3 s to import
        from marin_assets.inference.jax_model import load_model
        from marin_assets.stages.train.rl.sampling.unit import UnitSampler

        model, tokenizer = load_model(copy_to_local(config.model_path, folder))
        if config.max_length is not None and config.max_length > model.Pos.size:
            raise TrainError(
                f"max_length is {config.max_length}, and the model takes at most {model.Pos.size} tokens. Lower it."
            )
        rows = config.examples_per_unit * config.samples
        decoder = Decoder(model, tokenizer, rows=rows, max_length=config.max_length)
        sampler, digest = UnitSampler(config, decoder, environments), _digest_of(folder)
        rollouts: list[Rollout] = []
        for unit in (units := units_of(config)):
            rollouts += _sample_unit(config, sampler, unit, digest)
            log.info("unit %d of %d", unit.number + 1, len(units))
        return rollouts


def _sample_unit(config: RlEvalConfig, sampler: Any, unit: Unit, digest: str) -> list[Rollout]:
    if exists(unit_path(config.output_path, unit)):
        try:
            kept = read_unit(config.output_path, unit)
        except DamagedUnitError as error:
            log.warning("It is sampled again: %s", error)
            kept = []
        if {rollout.weights_digest for rollout in kept} == {digest}:
            return kept
    rollouts: list[Rollout] = sampler.sample(unit, digest)
    write_unit(config.output_path, unit, rollouts)
    return rollouts


def _digest_of(folder: str) -> str:
    """The digest of a local model."""
    digest = hashlib.sha256()
    for file in sorted(Path(folder).rglob("*")):
        if file.name.endswith(OF_THE_MODEL):
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _require_prompts(config: RlEvalConfig, rollouts: Sequence[Rollout]) -> None:
    """Raise TrainError for a lesson without an example that the model was given."""
    for lesson in sorted(config.lessons):
        of_lesson = [rollout for rollout in rollouts if rollout.lesson == lesson]
        if not any(was_prompted(rollout) for rollout in of_lesson):
            raise TrainError(
                f"None of the {config.examples} examples of the lesson {lesson!r} has a prompt: {of_lesson[0].reason}, "
                f"{of_lesson[0].note!r}. Correct the environment, or raise max_length."
            )


__all__ = ["RlEvalConfig", "evaluate_on_rewards"]
