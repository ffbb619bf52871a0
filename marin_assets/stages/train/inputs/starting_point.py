"""Find the checkpoint or the model that a training starts from, and check it before jax is loaded.

In:  a `Start`, the tokenizer of the run.
Out: `start.json` below the output path, {"step": N}: the checkpoint that the first attempt chose. Later attempts use
     the same, also when the other run has written newer ones since.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.checkpoints import METADATA, permanent_steps
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import read_hf_config, require_whole_weights
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace, Start
from marin_resources.storage.files import exists, read_json, write_json
from marin_resources.storage.paths import join

CHOICE = "start.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class StartingPoint:
    """The weights or the state to read at the first step."""

    path: str
    """The folder of the checkpoint itself, or the Hugging Face folder."""
    is_hugging_face: bool = False
    optimizer_state: bool = False
    step: int | None = None
    """Number of the checkpoint; None for a Hugging Face folder."""

    @property
    def first_step(self) -> int:
        """Number of the first step that the new run trains."""
        return self.step + 1 if self.optimizer_state and self.step is not None else 0

    def describe(self) -> dict[str, Any]:
        """For the result of the training."""
        return {"path": self.path, "step": self.step, "optimizer_state": self.optimizer_state}


def find_start(start: Start | None, output_path: str, tokenizer_path: str, *, is_resumed: bool) -> StartingPoint | None:
    """The starting point of the run, chosen once. A run that resumes from its own checkpoint does not read it again.

    Raises TrainError if it is not there, or has another vocabulary. On several hosts, host 0 calls it first.
    """
    if start is None:
        return None
    if isinstance(start, FromHuggingFace):
        read_hf_config(start.path)
        require_whole_weights(start.path)
        _check_vocabulary(start.path, tokenizer_path)
        return StartingPoint(path=start.path, is_hugging_face=True)
    choice = join(output_path, CHOICE)
    if exists(choice):
        step = _read_choice(choice)
    else:
        step = _choose(start)
        write_json(choice, {"step": step})
        log.info("continuing from the checkpoint of step %d in %s", step, start.checkpoints_path)
    if not is_resumed:
        _require_checkpoint(start, step)
        _check_vocabulary(_export_beside(start.checkpoints_path), tokenizer_path)
    path = join(start.checkpoints_path, f"step-{step}")
    return StartingPoint(path=path, step=step, optimizer_state=start.optimizer_state)


def _choose(start: FromCheckpoint) -> int:
    if start.step is not None:
        return start.step
    if exists(join(start.checkpoints_path, METADATA)):
        raise TrainError(
            f"{start.checkpoints_path!r} is one checkpoint, expected the folder of checkpoints. Pass the folder above "
            "it, and the number as step."
        )
    steps = permanent_steps(start.checkpoints_path)
    if not steps:
        raise TrainError(
            f"{start.checkpoints_path!r} has no complete permanent checkpoint. Pass output_path_of(step, "
            '"checkpoints") of a training; if that is still going, run this one again when it has saved one.'
        )
    return steps[-1]


def _require_checkpoint(start: FromCheckpoint, step: int) -> None:
    steps = permanent_steps(start.checkpoints_path)
    if step not in steps:
        existing = ", ".join(map(str, steps)) or "none"
        raise TrainError(
            f"{start.checkpoints_path!r} has no complete permanent checkpoint of step {step!r}; it has {existing}. "
            "Pass the number of one of them as step."
        )


def _read_choice(path: str) -> int:
    try:
        content = read_json(path)
    except ValueError:
        content = None
    step = content.get("step") if isinstance(content, dict) else None
    if isinstance(step, bool) or not isinstance(step, int):
        raise TrainError(
            f"{path!r} is damaged, expected the number of a checkpoint as 'step'. Remove it to choose again."
        )
    return step


def _export_beside(checkpoints_path: str) -> str:
    """The folder of the trained model, where a finished training of this house has one."""
    return join(posixpath.dirname(checkpoints_path.rstrip("/")), "hf")


def _check_vocabulary(folder: str, tokenizer_path: str) -> None:
    """Compare the tokenizer of the weights, if they have one, with the run's: equal shapes may be other tokens."""
    theirs = join(folder, "tokenizer.json")
    if exists(theirs) and _vocabulary(read_json(theirs)) != _vocabulary(
        read_json(join(tokenizer_path, "tokenizer.json"))
    ):
        raise TrainError(
            f"The model at {folder!r} has another vocabulary than the tokenizer {tokenizer_path!r}. Tokenize the "
            "documents with the model's tokenizer, and pass that as tokenizer_path."
        )


def _vocabulary(tokenizer: Mapping[str, Any]) -> Any:
    added = [(token["id"], token["content"]) for token in tokenizer.get("added_tokens") or ()]
    return tokenizer["model"]["vocab"], added
