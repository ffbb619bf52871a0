"""The arrays of a checkpoint, by name and shape, read without loading them."""

from __future__ import annotations

import json
from typing import Any

import haliax as hax
import jax
import tensorstore as ts
from haliax.jax_utils import is_jax_array_like
from levanter.tensorstore_serialization import build_kvstore_spec
from levanter.utils.jax_utils import leaf_key_paths

from marin_assets.stages.train.errors import TrainError
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join

ARRAY = "/zarr.json"
AVERAGE = "model_averaging/"
OPTIMIZER = "opt_state/"


def require_arrays(path: str, tree: Any, *, below: str = "") -> None:
    """Raise TrainError unless the checkpoint at `path` has an array of the same shape for each one in a tree.

    `below`: where the tree is in the checkpoint. A checkpoint of the older form, one folder an array, is not read.
    """
    if not exists(join(path, "manifest.ocdbt")):
        return
    stored = arrays_in(path)
    shapes = {below + name: shape for name, shape in shapes_of(tree).items()}
    if not below and any(name.startswith(AVERAGE) for name in stored) != any(
        name.startswith(AVERAGE) for name in shapes
    ):
        has, wants = ("", "no ") if any(name.startswith(AVERAGE) for name in stored) else ("no ", "an ")
        raise TrainError(
            f"The checkpoint at {path!r} has {has}averaged weights, and this run keeps {wants}average. Set ema_beta as "
            "in that run, or continue from the weights alone with optimizer_state=False."
        )
    for name, shape in shapes.items():
        if name not in stored and name.startswith(OPTIMIZER):
            raise TrainError(
                f"The checkpoint at {path!r} has no {name!r}: its optimizer is another one. Use that run's kind of "
                "optimizer, or continue from the weights alone with optimizer_state=False."
            )
        if stored.get(name) != shape:
            has = f"with shape {stored[name]}" if name in stored else "not at all"
            raise TrainError(
                f"The checkpoint at {path!r} has {name!r} {has}, and this run's model has {shape}. Pass the model (and "
                "the tokenizer) that it was trained with."
            )


def arrays_in(path: str) -> dict[str, tuple[int, ...]]:
    """Name -> shape of each array in a checkpoint."""
    store = ts.KvStore.open({"driver": "ocdbt", "base": build_kvstore_spec(path)}).result()
    names = [key.decode() for key in store.list().result() if key.endswith(ARRAY.encode())]
    reads = [(name, store.read(name)) for name in names]
    return {name.removesuffix(ARRAY): tuple(json.loads(read.result().value)["shape"]) for name, read in reads}


def shapes_of(tree: Any) -> dict[str, tuple[int, ...]]:
    """Name -> shape of each array in a tree, by the names that a checkpoint has."""
    is_named = lambda leaf: isinstance(leaf, hax.NamedArray)  # noqa: E731
    names = jax.tree.leaves(leaf_key_paths(tree, is_leaf=is_named))
    leaves = jax.tree.leaves(tree, is_leaf=is_named)
    arrays = [leaf.array if is_named(leaf) else leaf for leaf in leaves]
    pairs = zip(names, arrays, strict=True)
    return {name.replace(".", "/"): tuple(array.shape) for name, array in pairs if is_jax_array_like(array)}
