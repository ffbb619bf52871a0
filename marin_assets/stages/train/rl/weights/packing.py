"""Weights as the bytes of a safetensors file, made by one copy of the arrays; and such bytes as a model.

Each array is stored as whole numbers of its size, since safetensors has no bfloat16 for numpy. The header has the
digest of the arrays (`content.py`). Importing this imports jax.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import haliax as hax
import jax
import jmp
import numpy as np

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.levanter_run.models import model_config
from marin_assets.stages.train.rl.config import TrainRlConfig, as_training
from marin_assets.stages.train.rl.weights.content import arrays_in, empty_content, set_digest
from marin_assets.stages.train.vocabulary import rows_of

NAMES = {1: "U8", 2: "U16", 4: "U32", 8: "U64"}
"""The format's names of whole numbers, by their bytes."""


def packed(model: Any) -> bytearray:
    """Return the weights of a model as bytes that no later update changes."""
    names, leaves = zip(*_leaves(model), strict=True)
    arrays = [np.asarray(array) for array in jax.device_get(leaves)]
    ends = np.cumsum([array.nbytes for array in arrays]).tolist()
    entries = {
        name: {"dtype": NAMES[array.itemsize], "shape": array.shape, "data_offsets": [end - array.nbytes, end]}
        for name, array, end in zip(names, arrays, ends, strict=True)
    }
    content, begin = empty_content(entries, ends[-1])
    for array, end in zip(arrays, ends, strict=True):
        place = begin + end - array.nbytes
        np.frombuffer(content, array.dtype, array.size, place).reshape(array.shape)[...] = array
    set_digest(content)
    return content


class WeightsReader:
    """Makes models of bytes, in the precision of the compute."""

    def __init__(self, config: TrainRlConfig, tokenizer: str) -> None:
        """`tokenizer`: a local folder."""
        self._policy = jmp.get_policy(config.precision)
        spec = as_training(config).model
        built = model_config(spec, tokenizer)
        Vocab = hax.Axis("vocab", rows_of(spec) or 0)
        self._shape = eqx.filter_eval_shape(built.build, Vocab, key=jax.random.PRNGKey(0))

    def model_of(self, content: bytes | bytearray) -> Any:
        """Return the model. Raises TrainError for weights that do not fit."""
        stored = arrays_in(content)
        leaves = _leaves(self._shape)
        if {name: shape for name, (_, shape) in stored.items()} != {name: leaf.shape for name, leaf in leaves}:
            raise TrainError(f"The weights that were published are those of another model than {self._shape.config!r}.")
        dtype = np.dtype(self._policy.param_dtype)
        arrays = [
            np.frombuffer(stored[name][0], dtype if _is_float(leaf) else leaf.dtype).reshape(leaf.shape)
            for name, leaf in leaves
        ]
        structure = jax.tree.structure(eqx.filter(self._shape, _is_array))
        model = eqx.combine(jax.tree.unflatten(structure, arrays), eqx.filter(self._shape, _is_array, inverse=True))
        return self._policy.cast_to_compute(jax.tree.map(jax.numpy.asarray, model))


def _leaves(model: Any) -> list[tuple[str, Any]]:
    named, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(model, _is_array))
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in named]


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _is_float(leaf: Any) -> bool:
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating))
