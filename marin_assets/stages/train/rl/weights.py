"""The weights after a number of updates, as one file, which is whole or absent: `weights/0000012.safetensors`.

Each array is stored as whole numbers of its size, since safetensors has no bfloat16 for numpy. Importing this imports
jax.
"""

from __future__ import annotations

import hashlib
from typing import Any

import equinox as eqx
import haliax as hax
import jax
import jmp
import numpy as np
from safetensors.numpy import load, save

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.levanter_run.models import model_config
from marin_assets.stages.train.rl.config import TrainRlConfig, as_training
from marin_assets.stages.train.vocabulary import rows_of
from marin_resources.storage.files import names_in, read_bytes, remove, write_bytes
from marin_resources.storage.paths import join

FOLDER = "weights"
DIGITS = 7
SUFFIX = ".safetensors"


def weights_path(output_path: str, weights_step: int) -> str:
    return join(output_path, FOLDER, f"{weights_step:0{DIGITS}}{SUFFIX}")


def publish(model: Any, output_path: str, weights_step: int) -> str:
    """Write the weights of a model. Returns the digest of the file."""
    arrays = {name: np.asarray(jax.device_get(leaf)) for name, leaf in _leaves(model)}
    content = save({name: np.ascontiguousarray(array).view(f"u{array.itemsize}") for name, array in arrays.items()})
    write_bytes(weights_path(output_path, weights_step), content)
    return hashlib.sha256(content).hexdigest()


def remove_before(output_path: str, weights_step: int) -> None:
    """Remove the weights of fewer updates."""
    for name in names_in(folder := join(output_path, FOLDER)):
        if name.endswith(SUFFIX) and int(name.removesuffix(SUFFIX)) < weights_step:
            remove(join(folder, name))


class WeightsReader:
    """Reads files of weights as models, in the precision of the compute."""

    def __init__(self, config: TrainRlConfig, tokenizer: str) -> None:
        """`tokenizer`: a local folder."""
        self._policy = jmp.get_policy(config.precision)
        spec = as_training(config).model
        built = model_config(spec, tokenizer)
        Vocab = hax.Axis("vocab", rows_of(spec) or 0)
        self._shape = eqx.filter_eval_shape(built.build, Vocab, key=jax.random.PRNGKey(0))

    def read(self, output_path: str, weights_step: int) -> tuple[Any, str]:
        """Return the model and the digest of its file. Raises TrainError for weights that do not fit."""
        path = weights_path(output_path, weights_step)
        content = read_bytes(path)
        stored = load(content)
        leaves = _leaves(self._shape)
        if sorted(stored) != sorted(name for name, _ in leaves):
            raise TrainError(f"The weights at {path!r} are those of another model than {self._shape.config!r}.")
        dtype = np.dtype(self._policy.param_dtype)
        arrays = [stored[name].view(dtype if _is_float(leaf) else leaf.dtype) for name, leaf in leaves]
        structure = jax.tree.structure(eqx.filter(self._shape, _is_array))
        model = eqx.combine(jax.tree.unflatten(structure, arrays), eqx.filter(self._shape, _is_array, inverse=True))
        return self._policy.cast_to_compute(jax.tree.map(jax.numpy.asarray, model)), hashlib.sha256(content).hexdigest()


def _leaves(model: Any) -> list[tuple[str, Any]]:
    named, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(model, _is_array))
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in named]


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _is_float(leaf: Any) -> bool:
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating))
