"""The architecture of an encoder: sizes, names of parameters, forward pass and head, one interface for all families.

`families.py` chooses the class by the model_type of a config.json. Each family of models with a forward pass of its own
has a file: `bert.py`, `deberta.py`, `gte.py`, `modernbert.py`.

The layers' parameters are stacked, so that XLA compiles one layer, and not each of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Arrays = dict[str, Any]
"""The parameters in float32, by the names of `Architecture.names`. Those of layers are stacked along a first axis."""
FIRST, MEAN = "first", "mean"
"""The state that a head reads: that of the first token, or the mean of all."""


@dataclass(frozen=True, kw_only=True)
class HeadLayers:
    """Names of the tensors of a sequence classifier's head, as Hugging Face writes it for the family."""

    dense: str
    """Layer on the pooled state, (width, width)."""
    activation: str
    """Activation after it."""
    norm: str | None = None
    """Normalisation after the activation, with the encoder's epsilon."""
    last: str
    """Layer that returns the logits, (labels, width)."""
    pooling: str = FIRST
    dense_bias: bool = True
    norm_bias: bool = True


@dataclass(frozen=True, kw_only=True)
class Architecture(ABC):
    """The sizes of an encoder, from its config.json."""

    kind: str
    """Hugging Face's model_type."""
    prefix: str
    """Prefix of the parameters' names in a model with a head."""
    layers: int
    heads: int
    width: int
    activation: str
    norm_epsilon: float
    most_tokens: int
    head: HeadLayers

    @abstractmethod
    def names(self) -> dict[str, str]:
        """Return our name of each parameter -> Hugging Face's without the prefix, with {} for the number of a layer.

        The name of a matrix that states are multiplied with ends with "_scale", that of an embedding does not.
        """

    @abstractmethod
    def hidden_states(self, arrays: Arrays, tokens: Any, mask: Any) -> Any:
        """Return the last hidden states, (batch, position, width), of tokens (batch, position).

        `mask` is 1 for a token and 0 for padding, which is on the right. The states of a row depend on its tokens and
        on the two sizes of the batch, and on no other row. Those of padding have no meaning.
        """

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def lacks(self, key: str, layer: int) -> bool:
        """Whether a layer does not have this parameter. Its place in the stack is filled with ones, and not read."""
        return False

    def stacks(self, arrays: Arrays) -> Arrays:
        """Return the parameters of the layers."""
        return {key: arrays[key] for key, name in self.names().items() if "{}" in name}


def with_parts(layers: Mapping[str, str], *, bias: bool = True) -> dict[str, str]:
    """Return the names of weight and bias of layers, by our names of them.

    >>> with_parts({"wide": "layer.{}.dense"})
    {'wide_scale': 'layer.{}.dense.weight', 'wide_bias': 'layer.{}.dense.bias'}
    """
    parts = {"weight": "scale", "bias": "bias"} if bias else {"weight": "scale"}
    return {f"{key}_{ours}": f"{name}.{part}" for key, name in layers.items() for part, ours in parts.items()}
