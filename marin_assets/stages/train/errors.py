"""The errors of a training."""

from __future__ import annotations


class TrainError(ValueError):
    """The model cannot be trained with this config, or on this host: one sentence."""


class InputError(ValueError):
    """Caches, weights, mixture and tokenizer do not match: one sentence."""
