"""The config.json of a model: its values, with a sentence for those that lack or do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.inference.encoder.errors import EncoderError

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
ELSE = "Pass another encoder; score_by_function scores by any model."


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    values: Mapping[str, Any]
    where: str
    """The folder, for the sentences."""
    kind: str
    """Hugging Face's model_type."""

    def value(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default. Raises EncoderError if both are None."""
        value = self.values.get(key)
        if value is None and (value := default) is None:
            raise EncoderError(f"config.json in {self.where!r} has no {key!r}, expected that of a {self.kind} model.")
        return value

    def choice(self, key: str, choices: Sequence[Any], default: Any, named: str = "") -> Any:
        """Return the value of a key, or the default if it is absent. Raises EncoderError if it is none of the choices.

        `named` is its name in the sentence, the key if it is empty.
        """
        value = self.values.get(key, default)
        if value not in choices:
            expected = repr(choices[0]) if len(choices) == 1 else f"one of {list(choices)}"
            raise EncoderError(f"{self.where!r} has {named or key} {value!r}, expected {expected}. {ELSE}")
        return value

    def activation(self, key: str, default: str = "gelu", more: Sequence[str] = ()) -> str:
        """Return the name of an activation, one of ACTIVATIONS or of `more`. Raises EncoderError for another."""
        name: str = self.choice(key, [*ACTIVATIONS, *more], default, "the activation")
        return name
