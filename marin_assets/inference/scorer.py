"""Score given tokens with a Levanter model: the log-probability of each, and the likeliest in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.inference.jax_model import (
    ModelError,
    batch_sharding,
    bound,
    logits_at,
    mesh_for,
    padded_length,
    replicate,
    require_known,
)

LOGITS_BYTES = 2**28
"""Logits of a batch at most, as float32: with a large vocabulary, a batch has fewer rows."""


@dataclass(frozen=True, kw_only=True)
class TokenScores:
    """Scores of a text's tokens, from the second on."""

    logprobs: tuple[float, ...]
    """In nats."""
    likeliest: tuple[int, ...]
    likeliest_logprobs: tuple[float, ...]


class Scorer:
    """Scores rows of ids, batch by batch."""

    def __init__(self, model: Any, *, rows: int = 32, max_length: int | None = None) -> None:
        import jax

        self._devices = jax.local_devices()
        self._sharding = batch_sharding(self._devices)
        self._model = replicate(model, self._devices)
        self._rows = rows
        self.max_length = min(max_length or model.Pos.size, model.Pos.size)
        self._score = bound(_score, self._model)

    def check(self, ids: Sequence[int]) -> None:
        """Raise ModelError for a text without tokens, or with more than the window and the one after it."""
        if not 0 < len(ids) <= self.max_length + 1:
            raise ModelError(
                f"A text has {len(ids)} tokens, expected 1 to {self.max_length + 1}: the model's window of "
                f"{self.max_length}, and the token after it."
            )
        require_known(ids, self._model)

    def score(self, texts: Sequence[Sequence[int]]) -> list[TokenScores]:
        """The scores of each text, in their order. Raises ModelError as `check`."""
        for ids in texts:
            self.check(ids)
        results: list[TokenScores | None] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        while order:
            length = padded_length(len(texts[order[0]]) - 1, self.max_length)
            rows = self._rows_of(length)
            batch, order = order[:rows], order[rows:]
            for i, scores in zip(batch, self._batch([texts[i] for i in batch], rows, length), strict=True):
                results[i] = scores
        return [scores for scores in results if scores is not None]

    def _batch(self, texts: Sequence[Sequence[int]], rows: int, length: int) -> list[TokenScores]:
        import jax
        import numpy as np

        tokens = np.zeros((rows, length + 1), np.int32)  # the last is a target, and no input
        for place, ids in enumerate(texts):
            tokens[place, : len(ids)] = ids
        with mesh_for(self._model):
            arrays = self._score(jax.device_put(tokens, self._sharding))
        own, likeliest, best = (np.asarray(array) for array in arrays)
        return [
            TokenScores(
                logprobs=tuple(own[place, : len(ids) - 1].tolist()),
                likeliest=tuple(likeliest[place, : len(ids) - 1].tolist()),
                likeliest_logprobs=tuple(best[place, : len(ids) - 1].tolist()),
            )
            for place, ids in enumerate(texts)
        ]

    def _rows_of(self, length: int) -> int:
        fitting = max(1, LOGITS_BYTES // (4 * length * self._model.Vocab.size))
        devices = len(self._devices)
        return max(devices, min(self._rows, fitting) // devices * devices)


def _score(model: Any, tokens: Any) -> tuple[Any, Any, Any]:
    """Return, for each token from the second on, its log-probability, and the likeliest id there with its own.

    `tokens` are ids (rows, length + 1), of which all but the last are inputs; all of the result are (rows, length).
    """
    import jax
    import jax.numpy as jnp

    inputs = tokens[:, :-1]
    logits = logits_at(model, inputs, jnp.broadcast_to(jnp.arange(inputs.shape[1]), inputs.shape))
    total = jax.nn.logsumexp(logits, axis=-1)
    own = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
    return own - total, logits.argmax(axis=-1), logits.max(axis=-1) - total
