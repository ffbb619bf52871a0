"""Fit a linear head on vectors of texts: a softmax of labels, or a number by least squares.

The vectors are standardised, and that is undone in the weights. All examples are one batch, so the fit is a function of
them alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marin_assets.inference.encoder.classifier import Head

if TYPE_CHECKING:
    import numpy as np

LEAST_DEVIATION = 0.01
"""Share of the mean deviation: an encoder may have a dimension that is constant but for rounding."""


def fit_head(vectors: np.ndarray, targets: np.ndarray, labels: int, *, steps: int, learning_rate: float) -> Head:
    """Return the head of `labels` outputs that has the least loss and squared weights, by Adam with a cosine schedule.

    `vectors`: (examples, width) in float32; `targets`: (examples,), the numbers of labels in int32, or numbers to learn
    in float32 with one output. The squared weights count as `width` examples do: with few examples the head is close to
    the most common label, or to the mean.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    mean, deviation = vectors.mean(axis=0, dtype=np.float64), vectors.std(axis=0, dtype=np.float64)
    deviation = np.maximum(deviation, max(LEAST_DEVIATION * deviation.mean(), 1e-6))
    standard = ((vectors - mean) / deviation).astype(np.float32)
    numbers = targets.dtype != np.int32
    middle, spread = (targets.mean(dtype=np.float64), targets.std(dtype=np.float64) + 1e-6) if numbers else (0.0, 1.0)
    truth = ((targets - middle) / spread).astype(np.float32) if numbers else targets
    penalty = vectors.shape[1] / len(vectors) / 2
    optimizer = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))

    def loss(head: Head, inputs: Any, truth: Any) -> Any:
        outputs = inputs @ head["weight"].T + head["bias"]
        return losses(outputs, truth).mean() + penalty * (head["weight"] ** 2).sum()

    @jax.jit
    def fit(inputs: Any, truth: Any) -> Head:
        def step(state: Any, _: Any) -> Any:
            head, of_optimizer = state
            updates, of_optimizer = optimizer.update(jax.grad(loss)(head, inputs, truth), of_optimizer)
            return (optax.apply_updates(head, updates), of_optimizer), None

        head = Head(weight=jnp.zeros((labels, vectors.shape[1])), bias=jnp.zeros(labels))
        return jax.lax.scan(step, (head, optimizer.init(head)), None, length=steps)[0][0]

    head = fit(standard, truth)
    weight = np.asarray(head["weight"], np.float64) / deviation * spread
    bias = np.asarray(head["bias"], np.float64) * spread + middle - weight @ mean
    return Head(weight=weight.astype(np.float32), bias=bias.astype(np.float32))


def losses(outputs: Any, targets: Any) -> Any:
    """The loss of each example: cross-entropy for the numbers of labels, half the squared error for numbers."""
    import jax.numpy as jnp
    import optax

    if jnp.issubdtype(targets.dtype, jnp.integer):
        return optax.softmax_cross_entropy_with_integer_labels(outputs, targets)
    return (outputs[:, 0] - targets) ** 2 / 2
