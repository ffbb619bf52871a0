"""The start of a training, instead of random weights: a checkpoint of Levanter's, or a Hugging Face folder.

`num_train_steps` and the schedule of the learning rate are those of the new run in each case: they begin again.
"""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.step.values import versioned


@dataclass(frozen=True, kw_only=True)
class FromCheckpoint:
    """A checkpoint that Levanter wrote: of this house, or of Marin's."""

    checkpoints_path: str
    """Folder of checkpoints: `output_path_of(step, "checkpoints")`. With `.nonblocking()` the run that writes them may
    still be going; the first attempt chooses a checkpoint, and the later ones use the same."""
    step: int | None = versioned(None)
    """Number of the checkpoint: that of `step-N`. None: the last permanent one that is complete when the run begins."""
    optimizer_state: bool = versioned(False)
    """True: the optimizer's moments, the averaged weights and the place in the data continue, as for a cooldown. False:
    the weights alone are read; optimizer and data begin again."""


@dataclass(frozen=True, kw_only=True)
class FromHuggingFace:
    """The weights of a Hugging Face folder: of an export, or a downloaded model."""

    path: str
    """Folder with config.json and safetensors: `output_path_of(step, "hf")`."""


Start = FromCheckpoint | FromHuggingFace


def continues_optimizer(start: Start | None) -> bool:
    """Whether the optimizer's state and the place in the data continue."""
    return isinstance(start, FromCheckpoint) and start.optimizer_state
