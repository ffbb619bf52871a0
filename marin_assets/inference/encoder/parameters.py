"""The parameters of an encoder: from the tensors of a file under Hugging Face's names, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.inference.encoder.architecture import Architecture, Arrays
from marin_assets.inference.encoder.errors import EncoderError

OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
"""Names in the first exports of BERT."""


def gather(tensors: Mapping[str, Any], architecture: Architecture, where: str) -> Arrays:
    """Return the encoder's parameters from the tensors of a file, as float32. Raises EncoderError for one that lacks.

    Matrices are (in, out), as a batch is multiplied with them. `where` is named in the sentence.
    """
    import numpy as np

    prefix = architecture.prefix
    if not any(name.startswith(prefix) for name in tensors):
        prefix = ""

    def tensor(name: str) -> Any:
        full = prefix + name
        for suffix, old in OLD_NAMES.items():
            if full not in tensors and full.endswith(suffix):
                full = full.removesuffix(suffix) + old
        if full not in tensors:
            raise EncoderError(f"The weights in {where!r} have no {prefix + name!r}. Download or save the model again.")
        return np.asarray(tensors[full], np.float32)

    def stack(key: str, name: str) -> Any:
        layers = range(architecture.layers)
        rows = {layer: tensor(name.format(layer)) for layer in layers if not architecture.lacks(key, layer)}
        filling = np.ones_like(next(iter(rows.values()))) if rows else np.ones(architecture.width, np.float32)
        return np.stack([rows.get(layer, filling) for layer in layers])

    arrays: Arrays = {}
    for key, name in architecture.names().items():
        array = stack(key, name) if "{}" in name else tensor(name)
        arrays[key] = array.swapaxes(-1, -2) if _is_transposed(key, array, name) else array
    return arrays


def scatter(arrays: Arrays, architecture: Architecture) -> dict[str, Any]:
    """Return the parameters as the tensors of a file, without a prefix: the opposite of `gather`."""
    import numpy as np

    tensors = {}
    for key, name in architecture.names().items():
        array = np.asarray(arrays[key])
        if _is_transposed(key, array, name):
            array = array.swapaxes(-1, -2)
        if "{}" not in name:
            tensors[name] = np.ascontiguousarray(array)
            continue
        for layer in range(architecture.layers):
            if not architecture.lacks(key, layer):
                tensors[name.format(layer)] = np.ascontiguousarray(array[layer])
    return tensors


def matrices_of(arrays: Arrays, architecture: Architecture) -> dict[str, bool]:
    """Return which parameters are matrices, and neither biases nor norms."""
    return {key: arrays[key].ndim - ("{}" in name) == 2 for key, name in architecture.names().items()}


def _is_transposed(key: str, array: Any, name: str) -> bool:
    return key.endswith("_scale") and array.ndim - ("{}" in name) == 2
