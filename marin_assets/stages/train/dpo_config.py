"""Config of a training on preferences: that of `train_lm`, with a reference."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.step.values import versioned


@dataclass(frozen=True, kw_only=True)
class TrainDpoConfig(TrainLmConfig):
    """`components` has one name, with the path of tokenized preferences. `start` is the model that is trained."""

    beta: float = versioned(0.1)
    """How strongly the model is held to the reference; Rafailov et al. 2023."""
    reference: FromHuggingFace | None = None
    """The model whose preferences are the zero; None: the one that is trained, as it was at the start."""
