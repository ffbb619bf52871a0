"""Rotary positions: pairs of a head's dimensions are rotated by an angle that grows with the position.

Su et al. 2021, arXiv:2104.09864. A pair is a dimension of the first half and that at its place in the second half, as
in Hugging Face's models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def angles(length: int, head_width: int, theta: float, factor: float = 1.0) -> np.ndarray:
    """Return the angles of positions and pairs in radians, (length, head_width / 2) in float32.

    Pair i turns by theta ** (-2 i / head_width) at each position. `factor` is that of the fixed NTK scaling of GTE
    (Zhang et al. 2024, arXiv:2407.19669): theta times the factor, and all frequencies divided by
    factor ** (2 / head_width).
    """
    import numpy as np

    exponents = np.arange(0, head_width, 2, dtype=np.float32) / np.float32(head_width)
    frequencies = np.float32(1) / np.float32(theta * factor) ** exponents
    if factor != 1:
        frequencies = frequencies / np.float32(factor ** (2 / head_width))
    return np.outer(np.arange(length, dtype=np.float32), frequencies)


def rotated(x: Any, angle: Any) -> Any:
    """Return x, (batch, position, head, width of a head), rotated by angles (position, width of a head / 2)."""
    import jax.numpy as jnp

    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
