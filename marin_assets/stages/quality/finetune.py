"""Fine-tune an encoder with its head: AdamW with a linear warm-up and a cosine decay (Devlin et al. 2019,
arXiv:1810.04805, section 4), without dropout.

An epoch is a permutation of the examples that is a function of the seed. Examples of similar length are batched
together. State is saved as the training goes, so a training that was killed continues, and ends with the same weights.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from marin_assets.inference.encoder.batches import ROWS, padded, padded_lengths
from marin_assets.inference.encoder.classifier import Head
from marin_assets.inference.encoder.encoder import Encoder, mean_of
from marin_assets.inference.encoder.parameters import matrices_of
from marin_assets.stages.quality.fit_head import losses
from marin_resources.step_api.progress import checkpoint_requested, report_checkpoint, report_resumed, report_step
from marin_resources.storage.files import exists, open_atomic, read_bytes

if TYPE_CHECKING:
    import numpy as np

SORTED_BATCHES = 32
"""Batches whose examples are sorted by their length together."""
LOG_EVERY_S = 5.0
LARGEST_GRADIENT = 1.0
WEIGHT_DECAY = 0.01
"""For matrices, and neither for biases nor for norms."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    epochs: int
    batch: int
    learning_rate: float
    warmup: float
    """Share of the steps."""
    seed: int
    save_every_s: float


def finetune(
    encoder: Encoder, head: Head, texts: Sequence[str], targets: np.ndarray, schedule: Schedule, state_path: str
) -> tuple[Encoder, Head]:
    """Return the encoder and the head after training. `targets` are as in `fit_head`.

    Continues from the state at `state_path`, if it exists.
    """
    import jax
    import numpy as np
    import optax

    tokens = encoder.tokens(texts)
    batches = -(-len(tokens) // schedule.batch)
    total = batches * schedule.epochs
    warmup = min(int(total * schedule.warmup), total - 1)
    rate = optax.warmup_cosine_decay_schedule(0.0, schedule.learning_rate, warmup, total)
    matrices = (
        matrices_of(encoder.arrays, encoder.architecture),
        {"weight": True, "bias": False},
    )
    optimizer = optax.chain(
        optax.clip_by_global_norm(LARGEST_GRADIENT),
        optax.adamw(rate, weight_decay=WEIGHT_DECAY, mask=matrices),
    )

    def loss(parameters: Any, ids: Any, mask: Any, truth: Any, weights: Any) -> Any:
        arrays, last = parameters
        outputs = mean_of(arrays, ids, mask, encoder.architecture) @ last["weight"].T + last["bias"]
        return (losses(outputs, truth) * weights).sum() / weights.sum()

    @jax.jit
    def step(state: Any, *batch: Any) -> Any:
        parameters, of_optimizer = state
        value, gradient = jax.value_and_grad(loss)(parameters, *batch)
        updates, of_optimizer = optimizer.update(gradient, of_optimizer, parameters)
        return (optax.apply_updates(parameters, updates), of_optimizer), value

    parameters = (encoder.arrays, encoder.on_each_device(dict(head)))
    done, state = _restored(state_path, (parameters, optimizer.init(parameters)))
    state = encoder.on_each_device(state)
    rows = -(-schedule.batch // ROWS) * ROWS
    if done:
        log.info("continues after step %d of %d", done, total)
    report_resumed(done or None)
    began_s = logged_s = saved_s = time.monotonic()
    for number in range(done, total):
        epoch, index = divmod(number, batches)
        if index == 0 or number == done:
            order = _order(list(map(len, tokens)), schedule.batch, np.random.default_rng([schedule.seed, epoch]))
        places = order[index]
        longest = max(len(tokens[place]) for place in places)
        length = next(length for length in padded_lengths(encoder.max_tokens) if length >= longest)
        ids, mask = padded([tokens[place] for place in places], rows, length)
        truth = np.resize(targets[places], rows)
        weights = (np.arange(rows) < len(places)).astype(np.float32)
        state, value = step(state, *map(encoder.on_devices, (ids, mask, truth, weights)))
        report_step(number + 1)
        now_s, last = time.monotonic(), number + 1 == total
        if now_s - logged_s >= LOG_EVERY_S or last:
            rate = (number + 1 - done) / (now_s - began_s)
            log.info("step %d of %d, loss %.4f, %.2f steps/s, %.0f s left",
                     number + 1, total, float(value), rate, (total - number - 1) / rate)  # fmt: skip
            logged_s = now_s
        if not last and (now_s - saved_s >= schedule.save_every_s or checkpoint_requested()):
            _save(state_path, number + 1, state)
            report_checkpoint(number + 1)
            saved_s = now_s
    arrays, after = state[0]
    trained = Head(weight=np.asarray(after["weight"]), bias=np.asarray(after["bias"]))
    return replace(encoder, arrays=arrays), trained


def _order(lengths: Sequence[int], batch: int, random: np.random.Generator) -> list[list[int]]:
    """Return the batches of an epoch, as places of examples."""

    def windows(places: list[int], size: int) -> Iterator[list[int]]:
        return (places[start : start + size] for start in range(0, len(places), size))

    drawn = random.permutation(len(lengths)).tolist()
    by_length = (sorted(window, key=lengths.__getitem__) for window in windows(drawn, batch * SORTED_BATCHES))
    batches = [places for window in by_length for places in windows(window, batch)]
    return [batches[i] for i in random.permutation(len(batches))]


def _save(path: str, step: int, state: Any) -> None:
    import jax
    import numpy as np

    content = io.BytesIO()
    np.savez(content, np.int64(step), *map(np.asarray, jax.tree.leaves(state)))
    with open_atomic(path) as out:
        out.write(content.getbuffer())


def _restored(path: str, state: Any) -> tuple[int, Any]:
    """Return (steps that are done, their state)."""
    import jax
    import numpy as np

    if not exists(path):
        return 0, state
    with np.load(io.BytesIO(read_bytes(path))) as saved:
        step, *leaves = (saved[name] for name in saved.files)
    return int(step), jax.tree.unflatten(jax.tree.structure(state), [jax.numpy.asarray(leaf) for leaf in leaves])
