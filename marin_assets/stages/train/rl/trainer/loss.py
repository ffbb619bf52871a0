"""The loss of an objective, and what is measured of the policy with it. Importing this imports jax.

Log-probabilities come from the same functions as in the sampler, at its temperature, so that they agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from haliax import NamedArray
from levanter.metrics import Metric, ReductionType

from marin_assets.inference.jax_model import hidden_of, logits_of
from marin_assets.stages.train.rl.objective import Objective

POSITIONS_AT_ONCE = 64
"""Positions whose logits are in memory at a time; the gradient computes them again."""


class Batch(eqx.Module):
    """The arrays of `batch.Arrays`, by Levanter's axes; those of the reference are 0 without one."""

    tokens: NamedArray
    mask: NamedArray
    drawn_logprobs: NamedArray
    reference_logprobs: NamedArray
    advantages: NamedArray


def loss_function(objective: Objective, *, temperature: float, max_tokens: int) -> Callable[..., Any]:
    """The function of model and Batch that Levanter's trainer minimizes, with its metrics."""

    def loss(model: Any, batch: Batch, *, key: Any = None) -> tuple[Any, dict[str, Metric]]:
        logprobs, entropies = token_logprobs(model, batch.tokens.array, temperature)
        value, metrics = objective_loss(
            objective,
            logprobs=logprobs,
            drawn=batch.drawn_logprobs.array,
            reference=batch.reference_logprobs.array,
            mask=batch.mask.array,
            advantages=batch.advantages.array,
            max_tokens=max_tokens,
        )
        metrics["entropy"] = _mean(entropies, batch.mask.array)
        largest = ("ratio_max", "mismatch_max")
        kinds = {name: ReductionType.MAX if name in largest else ReductionType.MEAN for name in metrics}
        return value, {name: Metric.from_value(number, kinds[name]) for name, number in metrics.items()}

    return loss


def token_logprobs(model: Any, tokens: Any, temperature: float) -> tuple[Any, Any]:
    """Log-probability of the token after each, and entropy of that choice, both (rows, positions), in nats at this
    temperature. Those of the last position mean nothing."""
    rows, positions = tokens.shape
    hidden = hidden_of(model, tokens)
    targets = jnp.roll(tokens, -1, axis=1)
    padding = -positions % POSITIONS_AT_ONCE
    hidden = jnp.pad(hidden, ((0, 0), (0, padding), (0, 0)))
    targets = jnp.pad(targets, ((0, 0), (0, padding)))

    @jax.checkpoint
    def of_part(part: tuple[Any, Any]) -> tuple[Any, Any]:
        logits = logits_of(model, part[0]) / temperature
        logprobs = jax.nn.log_softmax(logits, axis=-1)
        entropy = -(jnp.exp(logprobs) * logprobs).sum(axis=-1)
        return jnp.take_along_axis(logprobs, part[1][..., None], axis=-1)[..., 0], entropy

    def parts(array: Any) -> Any:
        split = array.reshape(rows, -1, POSITIONS_AT_ONCE, *array.shape[2:])
        return jnp.moveaxis(split, 1, 0)

    logprobs, entropies = jax.lax.map(of_part, (parts(hidden), parts(targets)))
    whole = [jnp.moveaxis(array, 0, 1).reshape(rows, -1)[:, :positions] for array in (logprobs, entropies)]
    return whole[0], whole[1]


def objective_loss(
    objective: Objective,
    *,
    logprobs: Any,
    drawn: Any,
    reference: Any,
    mask: Any,
    advantages: Any,
    max_tokens: int,
) -> tuple[Any, dict[str, Any]]:
    """Return the loss, and metrics of it. All arrays are (rows, positions) but the advantages, which are (rows,)."""
    moved = (logprobs - drawn) * mask
    ratio = jnp.exp(moved)
    gain, bound = _gain(objective, logprobs * mask, drawn * mask, moved, mask, advantages[:, None])
    weights = _weights(objective.kind, mask, max_tokens)
    loss = -(weights * gain).sum()
    metrics = {
        "ratio_mean": _mean(ratio, mask),
        "ratio_max": (ratio * mask).max(),
        "mismatch_max": jnp.abs(moved).max(),
        "bound_share": _mean(bound, mask),
        "k3_of_sampler": _mean(jnp.exp(-moved) - 1 + moved, mask),
    }
    if objective.kl_weight:
        kl = divergence(objective.kl, (logprobs - reference) * mask)
        loss = loss + objective.kl_weight * (weights * kl).sum()
        metrics["kl"] = _mean(kl, mask)
    return loss, metrics


def divergence(kind: str, k1: Any) -> Any:
    """The estimate of each token. `k1`: log-probability less that of the reference."""
    if kind == "k1":
        return k1
    return k1**2 / 2 if kind == "k2" else jnp.exp(-k1) - 1 + k1


def _gain(objective: Objective, logprobs: Any, drawn: Any, moved: Any, mask: Any, advantages: Any) -> tuple[Any, Any]:
    """The term of each token that is made greater; and whether the correction holds it back."""
    stop = jax.lax.stop_gradient
    ratio = jnp.exp(moved)
    if objective.correction == "none":
        return logprobs * advantages, jnp.zeros_like(mask)
    if objective.correction == "truncate":
        weight = stop(jnp.minimum(ratio, objective.most_ratio))
        return logprobs * advantages * weight, ratio > objective.most_ratio
    if objective.correction == "mask":
        is_far = stop(jnp.abs(jnp.exp(logprobs) - jnp.exp(drawn)) > objective.most_moved)
        return jnp.where(is_far, 0.0, logprobs * stop(ratio) * advantages), is_far
    if objective.correction == "sequence":
        length = jnp.maximum(mask.sum(axis=1, keepdims=True), 1)
        ratio = jnp.broadcast_to(jnp.exp(moved.sum(axis=1, keepdims=True) / length), mask.shape)
    clipped = jnp.clip(ratio, 1 - objective.clip_low, 1 + objective.clip_high)
    return jnp.minimum(ratio * advantages, clipped * advantages), clipped * advantages < ratio * advantages


def _weights(kind: str, mask: Any, max_tokens: int) -> Any:
    """The weight of each token in the loss: those of all tokens are 1 together, of dr_grpo at most."""
    lengths = mask.sum(axis=1, keepdims=True)
    rows = jnp.maximum((lengths > 0).sum(), 1)
    if kind == "grpo":
        return mask / jnp.maximum(lengths, 1) / rows
    return mask / (rows * max_tokens) if kind == "dr_grpo" else mask / jnp.maximum(mask.sum(), 1)


def _mean(values: Any, mask: Any) -> Any:
    return (values * mask).sum() / jnp.maximum(mask.sum(), 1)
