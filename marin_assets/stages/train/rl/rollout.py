"""Rollouts: answers of the model, with what they were drawn with and their rewards. All that were made are kept.

`rollouts/step-0000012.parquet` has those of a step, and is written before the step is trained on; at the end each
hundred steps are one file, `rollouts/steps-0000000-0000099.parquet`. Their rows are documents: "text" is prompt and
answer. Lists are JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from marin_assets.documents.parquet.read import read_parquet
from marin_assets.documents.parquet.write import write_parquet
from marin_assets.stages.train.errors import TrainError
from marin_resources.storage.files import exists, names_in, remove
from marin_resources.storage.paths import join

FOLDER = "rollouts"
STEPS_A_FILE = 100
DIGITS = 7
LISTS = ("prompt_ids", "ids", "logprobs", "mask", "example")


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One answer."""

    id: str
    """Step and group of the plan, and number in the group."""
    step: int
    """The step that it was sampled for; in the free order, the first that trained on it or left it out."""
    group: int
    """Number of its group in the step."""
    member: int
    lesson: str
    weights_step: int
    """Number of updates that the weights which drew it have had."""
    weights_digest: str
    """Digest of these weights."""
    example: Any
    prompt: str
    """The prompt's tokens as a text."""
    answer: str
    """All after the prompt, replies included."""
    prompt_ids: list[int]
    ids: list[int]
    """Tokens after the prompt: drawn ones, end tokens too, and those of replies."""
    logprobs: list[float]
    """Log-probability of each of `ids` at the temperature of the sampling, in nats; 0 for those of replies."""
    mask: list[int]
    """1 for drawn tokens, 0 for those of replies."""
    finish: str
    """"stop" or "length"; empty for one without an answer."""
    reward: float | None = None
    used: bool = True
    reason: str = ""
    """Why it is not used."""
    note: str = ""
    """The error of the environment."""

    @property
    def group_id(self) -> str:
        """The identity of its group, which is the same in each batch."""
        return self.id.rpartition("-")[0]


def unused(rollout: Rollout, reason: str, note: str = "") -> Rollout:
    return replace(rollout, used=False, reason=reason, note=note)


def path_of_step(output_path: str, step: int) -> str:
    return join(output_path, FOLDER, f"step-{step:0{DIGITS}}.parquet")


def write_step(output_path: str, step: int, rollouts: Sequence[Rollout]) -> None:
    """Write the table of a step, whole or not at all."""
    write_parquet(path_of_step(output_path, step), map(_row, rollouts))


def has_step(output_path: str, step: int) -> bool:
    """Whether the rollouts of a step are all made."""
    return exists(path_of_step(output_path, step)) or exists(_combined_path(output_path, step))


def read_step(output_path: str, step: int) -> list[Rollout] | None:
    """The rollouts of a step, in their order; None if they are not all made. Raises TrainError for a damaged file."""
    path = path_of_step(output_path, step)
    if exists(path):
        return read_table(path)
    combined = _combined_path(output_path, step)
    if exists(combined):
        return [rollout for rollout in read_table(combined) if rollout.step == step]
    return None


class Tables:
    """The tables of a training that are read step by step: each file once."""

    def __init__(self, output_path: str) -> None:
        self._output_path, self._first, self._rollouts = output_path, -1, list[Rollout]()

    def of_step(self, step: int) -> list[Rollout]:
        """The rollouts of a step; none if they are not stored."""
        combined, first = _combined_path(self._output_path, step), step - step % STEPS_A_FILE
        if not exists(combined):
            return read_step(self._output_path, step) or []
        if first != self._first:
            self._first, self._rollouts = first, read_table(combined)
        return [rollout for rollout in self._rollouts if rollout.step == step]


def read_table(path: str) -> list[Rollout]:
    """The rollouts of one file. Raises TrainError for a damaged one."""
    try:
        return [_rollout(row) for _, row in read_parquet(path, None)]
    except (ValueError, KeyError, TypeError) as error:
        raise TrainError(
            f"The rollouts at {path!r} are damaged ({error}). Remove the file, and they are made again while their "
            "weights are there; or compute the step again."
        ) from error


def read_rollouts(output_path: str) -> list[Rollout]:
    """All rollouts of a training, by step."""
    folder = join(output_path, FOLDER)
    tables = (read_table(join(folder, name)) for name in sorted(names_in(folder)) if name.endswith(".parquet"))
    return sorted((rollout for table in tables for rollout in table), key=lambda rollout: rollout.id)


def combine_steps(output_path: str, steps: int) -> None:
    """Make the tables of each hundred steps one. A killed call is completed by the next."""
    for first in range(0, steps, STEPS_A_FILE):
        these = range(first, min(first + STEPS_A_FILE, steps))
        if not exists(combined := _combined_path(output_path, first)):
            tables = (read_step(output_path, step) for step in these)
            write_parquet(combined, (_row(rollout) for table in tables for rollout in table or ()))
        for step in these:
            if exists(path := path_of_step(output_path, step)):
                remove(path)


def count_rollouts(rollouts: Iterable[Rollout]) -> dict[str, Any]:
    """Return rollouts (all that were made), rollouts_used, and rollouts_unused by reason: they add up."""
    reasons: Counter[str] = Counter("" if rollout.used else rollout.reason for rollout in rollouts)
    used = reasons.pop("", 0)
    return {"rollouts": used + reasons.total(), "rollouts_used": used, "rollouts_unused": dict(sorted(reasons.items()))}


def _combined_path(output_path: str, step: int) -> str:
    first = step - step % STEPS_A_FILE
    return join(output_path, FOLDER, f"steps-{first:0{DIGITS}}-{first + STEPS_A_FILE - 1:0{DIGITS}}.parquet")


def _row(rollout: Rollout) -> dict[str, Any]:
    row = vars(rollout)
    texts = {name: json.dumps(row[name]) for name in LISTS}
    return {"id": row["id"], "text": rollout.prompt + rollout.answer, **row, **texts}


def _rollout(row: Any) -> Rollout:
    own = {column.name: row[column.name] for column in fields(Rollout)}
    return Rollout(**{**own, **{name: json.loads(own[name]) for name in LISTS}})
