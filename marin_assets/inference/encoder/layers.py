"""The parts of which layers of encoders are made: linear layers, normalisation, attention, activations."""

from __future__ import annotations

from typing import Any

from marin_assets.inference.encoder.architecture import Arrays


def linear(arrays: Arrays, name: str, x: Any) -> Any:
    """Return a linear layer of x, (…, in) to (…, out), with a bias if it has one."""
    outputs = x @ arrays[f"{name}_scale"]
    return outputs + arrays[f"{name}_bias"] if f"{name}_bias" in arrays else outputs


def normalised(arrays: Arrays, name: str, x: Any, epsilon: float) -> Any:
    """Return x with mean 0 and variance 1 along its last axis, scaled, and shifted if the norm has a bias.

    Ba et al. 2016, arXiv:1607.06450.
    """
    import jax
    import jax.numpy as jnp

    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(variance + epsilon) * arrays[f"{name}_scale"]
    return scaled + arrays[f"{name}_bias"] if f"{name}_bias" in arrays else scaled


def activated(x: Any, activation: str) -> Any:
    """Return an activation of x: "relu", "tanh", "gelu", or by another name gelu's approximation by tanh."""
    import jax
    import jax.numpy as jnp

    if activation in ("relu", "tanh"):
        return jax.nn.relu(x) if activation == "relu" else jnp.tanh(x)
    return jax.nn.gelu(x, approximate=activation != "gelu")


def by_heads(x: Any, heads: int) -> Any:
    """Return (batch, position, width) as (batch, position, head, width of a head)."""
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)


def attend(query: Any, key: Any, value: Any, bias: Any, scale: float) -> Any:
    """Return the attention's sums of values, (batch, position, width), of arrays (batch, position, head, width of one).

    `bias` is added to the scores (batch, head, position of the query, position of the key), which are divided by
    `scale`. Vaswani et al. 2017, arXiv:1706.03762.
    """
    import jax
    import jax.numpy as jnp

    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / scale + bias
    attended = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
    return attended.reshape(*attended.shape[:2], -1)


def hiding(mask: Any) -> Any:
    """Return the bias that hides padding from every query: (batch, 1, 1, position)."""
    import jax.numpy as jnp

    return jnp.where(mask[:, None, None, :] > 0, 0.0, jnp.finfo(jnp.float32).min)
