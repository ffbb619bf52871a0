"""A Levanter model with lm-eval's interface: `JaxLM(*load_model(folder))`.

Batches have one size and a few lengths (powers of two), so XLA compiles few programs; the longest texts go first. Each
batch is sharded over the local accelerators, and each accelerator holds the whole model. This module imports lm-eval at
the top: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from marin_assets.inference.decoder import Decoder, Prompt
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
from marin_assets.inference.prefix_sharing import SharedRow, share_rows
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, Answers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.token_lm import TokenLM


class JaxLM(TokenLM):
    """Log-likelihoods and greedy generation of a Levanter model.

    `batch_size` is the number of rows of a batch, rounded up to a multiple of the local devices. `max_length` is the
    context in tokens, the model's own if None. Longer texts are truncated on the left.
    """

    def __init__(
        self, model: Any, tokenizer: ModelTokenizer, *, batch_size: int = 32, max_length: int | None = None
    ) -> None:
        super().__init__(tokenizer, max_length or model.Pos.size)
        import jax

        devices = jax.local_devices()
        self._sharding = batch_sharding(devices)
        self._model = replicate(model, devices)
        self._rows = -(-batch_size // len(devices)) * len(devices)
        if self._max_length > model.Pos.size:
            raise ModelError(f"max_length is {max_length}, expected at most the model's window of {model.Pos.size}.")
        self._score = bound(_score, self._model)
        self._decoder = Decoder(self._model, tokenizer, rows=self._rows, max_length=self._max_length)

    def _score_rows(self, rows: Sequence[Sequence[int]], counts: Sequence[int], answers: Answers) -> None:
        import numpy as np

        for ids in rows:
            require_known(ids, self._model)
        shared = share_rows(rows, counts, self._bucket)
        for batch, length, scored in self._batches(shared, "log-likelihoods"):
            # Batches are those of all rows, and are kept whole: a resumed evaluation has the same shapes, and so the
            # same last digits.
            if all(i in answers.rows for row in batch for i in row.members):
                continue
            tokens = np.zeros((self._rows, length), np.int32)
            positions, targets = np.zeros((2, self._rows, scored), np.int32)
            for place, row in enumerate(batch):
                tokens[place, : len(row.inputs)] = row.inputs
                for i, at in _places(row, counts):
                    inputs = len(rows[i]) - 1
                    positions[place, at] = range(inputs - counts[i], inputs)
                    targets[place, at] = rows[i][len(rows[i]) - counts[i] :]
            with mesh_for(self._model):
                arrays = self._score(*self._put(tokens, positions, targets))
            logprobs, greedy = (np.asarray(array) for array in arrays)
            scores = []
            for place, row in enumerate(batch):
                for i, at in _places(row, counts):
                    total = float(logprobs[place, at].astype(np.float64).sum())
                    scores.append({"place": i, ANSWER: (total, bool(greedy[place, at].all()))})
            answers.add(*scores)

    def _complete(self, prompts: Sequence[Prompt], answers: Answers) -> None:
        remaining = [i for i in range(len(prompts)) if i not in answers.rows]
        progress = LoggedProgress("generations", len(remaining))
        longest_first = sorted(remaining, key=lambda i: -len(prompts[i].ids))
        for number, completion in self._decoder.run(prompts[i] for i in longest_first):
            answers.add({"place": longest_first[number], ANSWER: completion.text})
            progress.advance(1)

    def _batches(self, rows: Sequence[SharedRow], requests: str) -> Iterator[tuple[list[SharedRow], int, int]]:
        """Yield (rows, the inputs and the targets to pad to) of each batch, longest first. Log the rate and the time
        left."""
        order = sorted(rows, key=lambda row: (-self._bucket(len(row.inputs)), -row.scored))
        progress = LoggedProgress(requests, sum(len(row.members) for row in rows))
        for begin in range(0, len(order), self._rows):
            batch = order[begin : begin + self._rows]
            length, scored = (self._bucket(max(sizes)) for sizes in zip(*map(_sizes, batch), strict=True))
            yield batch, length, scored
            progress.advance(sum(len(row.members) for row in batch))

    def _bucket(self, length: int) -> int:
        return padded_length(length, self._max_length)

    def _put(self, *arrays: Any) -> list[Any]:
        import jax

        return [jax.device_put(array, self._sharding) for array in arrays]


def _sizes(row: SharedRow) -> tuple[int, int]:
    return len(row.inputs), row.scored


def _places(row: SharedRow, counts: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """Each text of a row, and where its targets are among those of the row."""
    at = 0
    for i in row.members:
        yield i, slice(at, at + counts[i])
        at += counts[i]


def _score(model: Any, tokens: Any, positions: Any, targets: Any) -> tuple[Any, Any]:
    """Score the target ids: for each, its log-probability and whether it is the likeliest, both (batch, scored).

    `tokens` are ids (batch, position). `positions` and `targets` are (batch, scored): a position, and the id after it.
    """
    import jax
    import jax.numpy as jnp

    logits = logits_at(model, tokens, positions)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return picked - jax.nn.logsumexp(logits, axis=-1), picked == logits.max(axis=-1)
