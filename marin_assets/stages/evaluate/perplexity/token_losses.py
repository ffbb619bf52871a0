"""The loss of every token of a text, in nats.

A text is read in adjacent windows: every token is predicted once, from what is before it in its window, the first from
BOS (as in lm-eval's rolling log-likelihoods, to which the sums are equal). Windows of a few lengths make one batch, so
XLA compiles few programs. Logits are computed for a few positions at a time: those of a whole batch would not fit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from marin_assets.inference.jax_model import (
    ModelError,
    batch_sharding,
    hidden_of,
    logits_of,
    mesh_for,
    replicate,
    require_known,
)
from marin_assets.inference.tokenizer import ModelTokenizer

SHORTEST = 32
BUFFERED_WINDOWS = 2048
"""Windows that are sorted by length before they are batched. Their texts are in memory."""
LOGITS_BYTES = 256 * 1024**2
"""Limit on the float32 logits that are held at once."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TokenLosses:
    """The tokens of one text: their ids without BOS, the end of each in the text, in characters, and its loss in nats
    (float32)."""

    ids: list[int]
    ends: list[int]
    nats: Any


class Window(NamedTuple):
    """A part of a text that is read at once."""

    owner: int
    begin: int
    """The first token to be predicted in it."""
    start: int
    """The first whose loss counts: the others have been counted in the window before."""
    end: int


def spans_of(tokens: int, window: int) -> list[tuple[int, int, int]]:
    """Return (begin, start, end) of each window of a text. The last one is as long as the others: it begins earlier."""
    return [
        (max(0, min(tokens, start + window) - window), start, min(tokens, start + window))
        for start in range(0, tokens, window)
    ]


class TokenScorer:
    """Computes losses with a Levanter model, on all local devices."""

    def __init__(
        self, model: Any, tokenizer: ModelTokenizer, *, batch_size: int, max_length: int | None = None
    ) -> None:
        """Raises ModelError."""
        import haliax as hax
        import jax

        devices = jax.local_devices()
        self._sharding = batch_sharding(devices)
        self._model = replicate(model, devices)
        self._tokenizer = tokenizer
        self._rows = -(-batch_size // len(devices)) * len(devices)
        self._window = model.Pos.size if max_length is None else max_length
        if not 1 <= self._window <= model.Pos.size:
            raise ModelError(f"max_length is {max_length}, expected 1 to the model's window of {model.Pos.size}.")
        self._first = tokenizer.first_token_id
        positions = min(self._window, max(1, LOGITS_BYTES // (4 * self._rows * model.Vocab.size)))
        self._score = hax.named_jit(lambda *arrays: _losses(*arrays, positions=positions))

    def losses(self, texts: Iterable[str]) -> Iterator[TokenLosses]:
        """Yield the losses of each text, in order."""
        held: list[Any] = []
        windows: list[Window] = []
        for text in texts:
            encoding = self._tokenizer.encode_with_offsets(text)
            require_known(encoding.ids, self._model)
            windows += [Window(len(held), *span) for span in spans_of(len(encoding.ids), self._window)]
            held.append(encoding)
            if len(windows) >= BUFFERED_WINDOWS:
                yield from self._scored(held, windows)
                held, windows = [], []
        yield from self._scored(held, windows)

    def _scored(self, encodings: Sequence[Any], windows: Sequence[Window]) -> Iterator[TokenLosses]:
        import numpy as np

        held = [encoding.ids for encoding in encodings]
        losses_of_texts = [np.zeros(len(ids), np.float32) for ids in held]
        order = sorted(windows, key=lambda window: window.begin - window.end)
        for first in range(0, len(order), self._rows):
            batch = order[first : first + self._rows]
            length = self._bucket(batch[0].end - batch[0].begin)
            inputs, targets = np.zeros((2, self._rows, length), np.int32)
            for row, window in enumerate(batch):
                ids = held[window.owner][window.begin : window.end]
                inputs[row, 0] = held[window.owner][window.begin - 1] if window.begin else self._first
                inputs[row, 1 : len(ids)] = ids[:-1]
                targets[row, : len(ids)] = ids
            nats = self._run(inputs, targets)
            for row, window in enumerate(batch):
                losses_of_texts[window.owner][window.start : window.end] = nats[
                    row, window.start - window.begin : window.end - window.begin
                ]
        for ids, encoding, losses in zip(held, encodings, losses_of_texts, strict=True):
            yield TokenLosses(ids, [end for _, end in encoding.offsets], losses)

    def _run(self, inputs: Any, targets: Any) -> Any:
        import jax
        import numpy as np

        with mesh_for(self._model):
            put = [jax.device_put(array, self._sharding) for array in (inputs, targets)]
            return np.asarray(self._score(self._model, *put))

    def _bucket(self, length: int) -> int:
        bucket = SHORTEST
        while bucket < length:
            bucket *= 2
        return min(bucket, self._window)


def _losses(model: Any, inputs: Any, targets: Any, *, positions: int) -> Any:
    """The loss of each target, (batch, position), given the ids before them. `positions`: of which logits are held."""
    import jax
    import jax.numpy as jnp

    def of_piece(piece: tuple[Any, Any]) -> Any:
        hidden, piece_targets = piece
        logits = logits_of(model, hidden)
        return (
            jax.nn.logsumexp(logits, axis=-1) - jnp.take_along_axis(logits, piece_targets[..., None], axis=-1)[..., 0]
        )

    rows, length = inputs.shape
    count = -(-length // positions)
    lacking = count * positions - length
    hidden = jnp.pad(hidden_of(model, inputs), ((0, 0), (0, lacking), (0, 0)))
    padded_targets = jnp.pad(targets, ((0, 0), (0, lacking)))
    pieces = (
        hidden.reshape(rows, count, positions, -1).swapaxes(0, 1),
        padded_targets.reshape(rows, count, positions).swapaxes(0, 1),
    )
    return jax.lax.map(of_piece, pieces).swapaxes(0, 1).reshape(rows, -1)[:, :length]
