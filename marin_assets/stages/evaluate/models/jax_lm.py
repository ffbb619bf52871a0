"""A Levanter model with lm-eval's interface: `JaxLM(*load_model(folder))`.

Batches have one size and a few lengths (powers of two), so XLA compiles few programs; the longest texts go first. Each
batch is sharded over the local accelerators, and each accelerator holds the whole model. This module imports lm-eval at
the top: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from marin_assets.inference.completion_fields import SERVED
from marin_assets.inference.decoder import Decoder, Prompt
from marin_assets.inference.jax_model import (
    ModelError,
    batch_sharding,
    bound,
    logits_at,
    longest_packed,
    mesh_for,
    packed_length,
    padded_length,
    replicate,
    require_known,
)
from marin_assets.inference.prefix_sharing import PackedRow, pack_rows, share_rows
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, Answers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.token_lm import TokenLM

TEXTS_OF_A_ROW = 4
"""Texts that a packed row stands for: the choices of a usual question."""


MANY_TEXTS = 16_000
"""Texts from which rows are packed: of fewer, a small model takes longer to compile the packed rows than they save."""

Sizes = tuple[bool, int, int, int]
"""Whether a batch is packed, and its rows, inputs and targets, padded."""


class JaxLM(TokenLM):
    """Log-likelihoods and generation of a Levanter model.

    `batch_size` is the number of rows of a batch, rounded up to a multiple of the local devices. `max_length` is the
    context in tokens, the model's own if None. Longer texts are truncated on the left.
    """

    engine, sampling = "JAX", SERVED

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
        # those of a packed batch: with four times as many, the attention's weights leave a CPU's caches: half the speed
        self._packed_rows = -(-batch_size // (TEXTS_OF_A_ROW * len(devices))) * len(devices)
        self._score = bound(_score, self._model)
        self._decoder = Decoder(self._model, tokenizer, rows=self._rows, max_length=self._max_length)

    def _score_rows(self, rows: Sequence[Sequence[int]], counts: Sequence[int], answers: Answers) -> None:
        for ids in rows:
            require_known(ids, self._model)
        longest = longest_packed(self._model) if len(rows) >= MANY_TEXTS else 0
        packed = pack_rows(share_rows(rows, counts, self._bucket), longest)
        for batch, sizes in self._batches(packed, longest, "log-likelihoods"):
            # Batches are those of all rows, and are kept whole: a resumed evaluation has the same shapes, and so the
            # same last digits.
            if not all(i in answers.rows for row in batch for i in row.members):
                answers.add(*self._score_batch(batch, sizes, rows, counts))

    def _score_batch(
        self, batch: Sequence[PackedRow], sizes: Sizes, texts: Sequence[Sequence[int]], counts: Sequence[int]
    ) -> list[dict[str, Any]]:
        import numpy as np

        is_packed, rows, length, scored = sizes
        tokens, positions, branches = np.zeros((3, rows, length), np.int32)
        places, targets = np.zeros((2, rows, scored), np.int32)
        members: list[tuple[int, int, slice]] = []
        for number, row in enumerate(batch):
            for array, values in zip((tokens, positions, branches), zip(*row.tokens(), strict=True), strict=True):
                array[number, : row.length] = values
            begin = 0
            for i, at in row.places(texts, counts):
                members.append((i, number, slice(begin, begin := begin + counts[i])))
                places[members[-1][1:]] = at
                targets[members[-1][1:]] = texts[i][len(texts[i]) - counts[i] :]
        packed = tuple(self._put(positions, branches)) if is_packed else None
        with mesh_for(self._model):
            arrays = self._score(*self._put(tokens, places, targets), packed)
        logprobs, greedy = (np.asarray(array) for array in arrays)
        return [
            {"place": i, ANSWER: (float(logprobs[number, at].astype(np.float64).sum()), bool(greedy[number, at].all()))}
            for i, number, at in members
        ]

    def _complete(self, prompts: Sequence[Prompt], answers: Answers) -> None:
        remaining = [i for i in range(len(prompts)) if i not in answers.rows]
        progress = LoggedProgress("generations", len(remaining))
        longest_first = sorted(remaining, key=lambda i: -len(prompts[i].ids))
        for number, completion in self._decoder.run(prompts[i] for i in longest_first):
            answers.add({"place": longest_first[number], ANSWER: completion.text})
            progress.advance(1)

    def _batches(
        self, rows: Sequence[PackedRow], longest: int, requests: str
    ) -> Iterator[tuple[list[PackedRow], Sizes]]:
        """Yield the rows of each batch with its sizes, all packed or none, longest first. Log the rate and the time
        left.

        If one row is packed, all that fit are treated so, and all of a length have one number of targets: XLA compiles
        each pair of sizes, which takes as long as a hundred small batches.
        """
        progress = LoggedProgress(requests, sum(len(row.members) for row in rows))
        most_packed = longest if any(row.is_packed for row in rows) else 0
        for is_packed in (True, False):
            size, padded = (self._packed_rows, packed_length) if is_packed else (self._rows, self._bucket)
            of_kind = [row for row in rows if (row.length <= most_packed) is is_packed]
            of_kind.sort(key=lambda row: (-padded(row.length), -row.scored))
            batches = [of_kind[begin : begin + size] for begin in range(0, len(of_kind), size)]
            lengths = [padded(max(row.length for row in batch)) for batch in batches]
            targets: dict[int, int] = {}
            for batch, length in zip(batches, lengths, strict=True):
                targets[length] = max(targets.get(length, 0), *(row.scored for row in batch))
            for batch, length in zip(batches, lengths, strict=True):
                scored = targets[length] if is_packed else max(row.scored for row in batch)
                yield batch, (is_packed, size, length, padded(scored))
                progress.advance(sum(len(row.members) for row in batch))

    def _bucket(self, length: int) -> int:
        return padded_length(length, self._max_length)

    def _put(self, *arrays: Any) -> list[Any]:
        import jax

        return [jax.device_put(array, self._sharding) for array in arrays]


def _score(model: Any, tokens: Any, places: Any, targets: Any, packed: Any) -> tuple[Any, Any]:
    """Score the target ids: for each, its log-probability and whether it is the likeliest, both (batch, scored).

    `tokens` are ids (batch, position). `places` and `targets` are (batch, scored): a place in the row, and the id
    after it. `packed` as in `hidden_of`.
    """
    import jax
    import jax.numpy as jnp

    logits = logits_at(model, tokens, places, packed)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return picked - jax.nn.logsumexp(logits, axis=-1), picked == logits.max(axis=-1)
