"""Config of a training on preferences: that of `train_lm`, with a reference."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import InputError, TrainError
from marin_assets.stages.train.specs.optimizer import is_averaged
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.specs.types import without_versions
from marin_assets.step.values import versioned


@dataclass(frozen=True, kw_only=True)
class TrainDpoConfig(TrainLmConfig):
    """`components` has one name, with the path of tokenized preferences. `start` is the model that is trained."""

    beta: float = versioned(0.1)
    """How strongly the model is held to the reference; Rafailov et al. 2023."""
    reference: FromHuggingFace | None = None
    """The model whose preferences are the zero; None: the one that is trained, as it was at the start."""

    def check_fields(self) -> None:
        super().check_fields()
        _check(without_versions(self))


def _check(config: TrainDpoConfig) -> None:
    if config.mixture is None and len(config.components) != 1:
        raise InputError(
            f"components names {sorted(config.components)}, expected one cache of preferences. Tokenize all "
            "preferences into one."
        )
    if config.mixture is not None:
        raise InputError("mixture is of train_lm, and DPO trains on one cache of pairs. Leave it None.")
    if config.train_weights is not None or config.chat is not None:
        raise InputError(
            "train_weights and chat are of train_lm, and DPO trains on one cache of pairs. Leave them None."
        )
    if not isinstance(config.start, FromHuggingFace):
        raise TrainError(
            f"start is {config.start!r}, and DPO begins with the model of a Hugging Face folder. Pass "
            "start=FromHuggingFace(path=…)."
        )
    if config.loop is not None and (config.loop.train_seq_len or config.loop.z_loss_weight):
        raise TrainError("loop has train_seq_len or z_loss_weight, which are of train_lm. Leave them None for DPO.")
    if is_averaged(config.loop) and config.lora is None:
        raise TrainError(
            f"ema_beta is {config.loop and config.loop.ema_beta!r}, and in DPO Levanter begins the average with random "
            "weights. Leave it None, or train factors with lora."
        )
    if config.lora is not None and config.reference is not None:
        raise TrainError("With lora the reference is the model below the factors. Pass reference=None, or no lora.")
    if not config.beta > 0:
        raise TrainError(f"beta is {config.beta!r}, expected a number above 0, such as 0.1.")
