"""The errors of a training."""

from __future__ import annotations

from marin_resources.types.errors import MarinError


class TrainError(MarinError, ValueError):
    """The model cannot be trained with this config, or on this host: one sentence."""


class DamagedCheckpointError(TrainError):
    """The metadata of a checkpoint is whole, and its data are not."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"The checkpoint at {path!r} is damaged: {reason}. Restore its files, or begin with another one: pass its "
            "number as step."
        )
        self.path, self.reason = path, reason


class InputError(MarinError, ValueError):
    """Caches, weights, mixture and tokenizer do not match: one sentence."""
