"""A Levanter model with lm-eval's interface: `JaxLM(*load_model(folder))`.

Rows are filled with texts (`prefix_sharing.py`) and have few lengths, and batches of a length have one size, so XLA
compiles few programs: for a small model each takes as long as a hundred batches. Each batch is sharded over the local
accelerators, and each accelerator holds the whole model. This module imports lm-eval at the top: import it inside
functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.inference.completion_fields import SERVED
from marin_assets.inference.decoder import Decoder, Prompt
from marin_assets.inference.jax_model import (
    ModelError,
    batch_sharding,
    bound,
    hidden_of,
    logits_of,
    longest_packed,
    mesh_for,
    padded_length,
    replicate,
    require_known,
)
from marin_assets.inference.prefix_sharing import Row, TextTree, fill_rows, grow_trees, share_inputs
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, Answers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.token_lm import TokenLM

FILLED_LENGTH = 256
"""Inputs of a row that is filled with short trees; that of longer ones is the longest."""
FILLED_TOKENS, FILLED_TOKENS_ON_CPU = 256, 64
"""Inputs of a batch of filled rows, for each of `batch_size`. Of more, the weights of attention leave a CPU's caches,
and the batch takes twice as long."""
LOGITS_BYTES = 2**28
"""Logits that an accelerator holds at a time, as float32."""
TARGETS_TIMES = 32
"""Targets of a batch are padded to a multiple of this."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows that are computed together. All batches of a length have the same sizes."""

    of_devices: Sequence[Sequence[Row]]
    """The rows of each device."""
    is_packed: bool
    rows: int
    """Rows of a device, with padding."""
    length: int
    targets: tuple[int, int]
    """Parts of the targets of a device, whose logits are computed one after another, and targets of a part."""

    @property
    def members(self) -> list[int]:
        return [i for rows in self.of_devices for row in rows for i in row.members]


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
        self._devices, self._sharding = len(devices), batch_sharding(devices)
        self._model = replicate(model, devices)
        self._filled_tokens = FILLED_TOKENS_ON_CPU if jax.default_backend() == "cpu" else FILLED_TOKENS
        self._rows = -(-batch_size // len(devices)) * len(devices)
        if self._max_length > model.Pos.size:
            raise ModelError(f"max_length is {max_length}, expected at most the model's window of {model.Pos.size}.")
        self._score = bound(_score, self._model)
        self._decoder = Decoder(self._model, tokenizer, rows=self._rows, max_length=self._max_length)

    def _score_rows(self, rows: Sequence[Sequence[int]], counts: Sequence[int], answers: Answers) -> None:
        for ids in rows:
            require_known(ids, self._model)
        progress = LoggedProgress("log-likelihoods", len(rows))
        for batch in self._batches(rows, counts):
            # Batches are those of all rows, and are kept whole: a resumed evaluation has the same shapes, and so the
            # same last digits.
            if not all(i in answers.rows for i in batch.members):
                answers.add(*self._score_batch(batch, rows, counts))
            progress.advance(len(batch.members))

    def _batches(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> Iterator[Batch]:
        """All texts, those of the longest rows first."""
        longest = longest_packed(self._model)
        groups: dict[tuple[bool, int], list[TextTree]] = {}
        for tree in grow_trees(share_inputs(texts, counts, self._bucket), longest):
            groups.setdefault(self._length_of(tree, longest), []).append(tree)
        for is_packed, length in sorted(groups, reverse=True):
            trees = groups[is_packed, length]
            rows = fill_rows(trees, length) if is_packed else [Row([tree]) for tree in trees]
            yield from self._batches_of(rows, counts, is_packed=is_packed, length=length)

    def _length_of(self, tree: TextTree, longest: int) -> tuple[bool, int]:
        """Whether the row of a tree is filled with others, and its length."""
        if tree.length <= longest:
            return True, FILLED_LENGTH if tree.length <= FILLED_LENGTH else longest
        return False, self._bucket(tree.length)

    def _batches_of(
        self, rows: Sequence[Row], counts: Sequence[int], *, is_packed: bool, length: int
    ) -> Iterator[Batch]:
        """Rows are dealt to the batches, and to the devices of each, by their targets: all have about as many."""
        devices = self._devices
        size = -(-self._rows * self._filled_tokens // (length * devices)) if is_packed else self._rows // devices
        scored = {id(row): sum(counts[i] for i in row.members) for row in rows}
        ordered = sorted(rows, key=lambda row: -scored[id(row)])
        parts = -(-len(rows) // (size * devices)) * devices
        dealt = [ordered[number::parts] for number in range(parts)]
        targets = max(1, *(sum(scored[id(row)] for row in of_device) for of_device in dealt))
        most = max(LOGITS_BYTES // (4 * self._model.Vocab.size), 1)
        pieces = -(-targets // most)
        piece = -(-targets // (pieces * TARGETS_TIMES)) * TARGETS_TIMES
        for begin in range(0, parts, devices):
            yield Batch(
                of_devices=dealt[begin : begin + devices],
                is_packed=is_packed,
                rows=size,
                length=length,
                targets=(pieces, piece),
            )

    def _score_batch(self, batch: Batch, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> list[dict[str, Any]]:
        import numpy as np

        devices, (pieces, piece) = len(batch.of_devices), batch.targets
        inputs = np.zeros((4, devices, batch.rows * batch.length), np.int32)
        places, targets = np.zeros((2, devices, pieces * piece), np.int32)
        members: list[tuple[int, int, slice]] = []
        for device, rows in enumerate(batch.of_devices):
            end = 0
            for begin, row in zip(range(0, batch.rows * batch.length, batch.length), rows, strict=False):
                inputs[:, device, begin : begin + row.length] = np.array(list(row.tokens())).T
                for i, at in row.places(texts, counts):
                    members.append((i, device, slice(end, end := end + counts[i])))
                    places[members[-1][1:]] = np.add(at, begin)
                    targets[members[-1][1:]] = texts[i][len(texts[i]) - counts[i] :]
        tokens, *packed = self._put(*inputs.reshape(4, -1, batch.length))
        shape = devices, pieces, piece
        with mesh_for(self._model):
            arrays = self._score(
                tokens,
                *self._put(places.reshape(shape), targets.reshape(shape)),
                tuple(packed) if batch.is_packed else None,
            )
        logprobs, greedy = (np.asarray(array) for array in arrays)
        return [
            {"place": i, ANSWER: (float(logprobs[device, at].astype(np.float64).sum()), bool(greedy[device, at].all()))}
            for i, device, at in members
        ]

    def _complete(self, prompts: Sequence[Prompt], answers: Answers) -> None:
        remaining = [i for i in range(len(prompts)) if i not in answers.rows]
        progress = LoggedProgress("generations", len(remaining))
        longest_first = sorted(remaining, key=lambda i: -len(prompts[i].ids))
        for number, completion in self._decoder.run(prompts[i] for i in longest_first):
            answers.add({"place": longest_first[number], ANSWER: completion.text})
            progress.advance(1)

    def _bucket(self, length: int) -> int:
        return padded_length(length, self._max_length)

    def _put(self, *arrays: Any) -> list[Any]:
        import jax

        return [jax.device_put(array, self._sharding) for array in arrays]


def _score(model: Any, tokens: Any, places: Any, targets: Any, packed: Any) -> tuple[Any, Any]:
    """Score the target ids: for each, its log-probability and whether it is the likeliest, both (device, target).

    `tokens` are ids (row, position). `places` and `targets` are (device, piece, target): a place in the rows of the
    device, one after another, and the id after it. `packed` as in `hidden_of`.
    """
    import jax
    import jax.numpy as jnp

    hidden = hidden_of(model, tokens, packed)
    hidden = hidden.reshape(places.shape[0], -1, hidden.shape[-1])

    def of_piece(piece: tuple[Any, Any]) -> tuple[Any, Any]:
        logits = logits_of(model, jnp.take_along_axis(hidden, piece[0][..., None], axis=1))
        picked = jnp.take_along_axis(logits, piece[1][..., None], axis=-1)[..., 0]
        return picked - jax.nn.logsumexp(logits, axis=-1), picked == logits.max(axis=-1)

    scores = jax.lax.map(of_piece, (places.swapaxes(0, 1), targets.swapaxes(0, 1)))
    return jax.tree.map(lambda score: score.swapaxes(0, 1).reshape(places.shape[0], -1), scores)
