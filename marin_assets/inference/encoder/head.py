"""The head of a sequence classifier of Hugging Face: a layer on a pooled state, in some families a norm, and logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.inference.encoder.architecture import FIRST, Architecture, Arrays, with_parts
from marin_assets.inference.encoder.encoder import mean_of
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.layers import activated, normalised
from marin_assets.inference.encoder.model_config import ELSE

MOST_NAMES = 4
"""Names of other tensors in a sentence."""


def head_of(tensors: Mapping[str, Any], architecture: Architecture, labels: Sequence[str], path: str) -> Arrays:
    """Return the parameters of the head: matrices are (out, in), as in the file.

    Raises EncoderError if a tensor lacks or does not fit: the model has no head, or one of its own.
    """
    head, width = architecture.head, architecture.width
    names = with_parts({"dense": head.dense}, bias=head.dense_bias)
    if head.norm is not None:
        names |= with_parts({"norm": head.norm}, bias=head.norm_bias)
    names |= with_parts({"last": head.last})
    for name in names.values():
        if name not in tensors:
            raise EncoderError(
                f"{path!r} has an encoder without the head of a classifier (no {name!r}"
                f"{_others(tensors, architecture)}). Pass a sequence classifier, or train a head with train_encoder; "
                "score_by_function scores by any model."
            )
    if (outputs := tensors[f"{head.last}.bias"].shape[0]) != len(labels):
        raise EncoderError(
            f"The classifier at {path!r} has {outputs} outputs and {len(labels)} labels. Pass a folder with the "
            "config.json of its weights."
        )
    shapes = {"dense_scale": (width, width), "last_scale": (outputs, width), "last_bias": (outputs,)}
    for key, name in names.items():
        if (shape := tensors[name].shape) != (expected := shapes.get(key, (width,))):
            raise EncoderError(
                f"{name!r} in {path!r} has the shape {shape}, expected {expected}: the head is not that of a sequence "
                f"classifier of type {architecture.kind!r}. {ELSE}"
            )
    return {key: tensors[name] for key, name in names.items()}


def head_logits(arrays: Arrays, head: Arrays, tokens: Any, mask: Any, architecture: Architecture) -> Any:
    """Return the logits of a batch: (rows, labels)."""
    if architecture.head.pooling == FIRST:
        pooled = architecture.hidden_states(arrays, tokens, mask)[:, 0]
    else:
        pooled = mean_of(arrays, tokens, mask, architecture)
    hidden = pooled @ head["dense_scale"].T
    if "dense_bias" in head:
        hidden = hidden + head["dense_bias"]
    hidden = activated(hidden, architecture.head.activation)
    if "norm_scale" in head:
        hidden = normalised(head, "norm", hidden, architecture.norm_epsilon)
    return hidden @ head["last_scale"].T + head["last_bias"]


def _others(tensors: Mapping[str, Any], architecture: Architecture) -> str:
    """The tensors that are not of the encoder, for a sentence."""
    if not any(name.startswith(architecture.prefix) for name in tensors):
        return ""
    names = sorted(name for name in tensors if not name.startswith(architecture.prefix))
    if not names:
        return ""
    return f" beside {', '.join(map(repr, names[:MOST_NAMES]))}{' …' if len(names) > MOST_NAMES else ''}"
