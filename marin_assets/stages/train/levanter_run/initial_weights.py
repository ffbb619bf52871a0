"""The first state of a training: random weights, or those of a starting point. `train_lm` makes it by its `Trainer`.

Levanter's own ways are not used: `initialize_from_checkpoint_path` keeps the count of the old optimizer, so that the
new schedule is past its end and nothing is learnt; `initialize_from_hf` reads the weights in the precision of the
compute, and leaves random ones in the average.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import haliax as hax
import jax
import levanter.checkpoint
import tensorstore as ts
from haliax.jax_utils import is_jax_array_like
from haliax.partitioning import named_jit, round_axis_for_partitioning
from levanter.main import train_lm
from levanter.tensorstore_serialization import build_kvstore_spec
from levanter.tokenizers import load_tokenizer
from levanter.trainer import Trainer
from levanter.trainer_state import TrainerState
from levanter.utils.jax_utils import leaf_key_paths

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import read_hf_config
from marin_assets.stages.train.inputs.starting_point import StartingPoint
from marin_assets.stages.train.levanter_run.damage import reading
from marin_resources.storage.files import exists, list_files, open_to_read, write_json
from marin_resources.storage.mirror import local_path_of
from marin_resources.storage.paths import absolute, is_local, join

log = logging.getLogger(__name__)


ARRAY = "/zarr.json"
AVERAGE = "model_averaging/"
OPTIMIZER = "opt_state/"


class BeginningTrainer(Trainer):
    """Levanter's trainer, whose first state is that of a starting point.

    It keeps the first model for its evaluation, and the average of its weights that an earlier run has left.
    """

    model_config: Any
    start: StartingPoint | None
    vocab_size: int | None
    """Rows of the embedding; None: those of the tokenizer."""
    is_resumed: bool
    folder: str
    """For temporary files."""
    first_model: Any = None
    first_average: Any = None
    """None without an average of the weights."""

    def initial_state(
        self,
        training_key: Any,
        model: Any = None,
        model_init: Callable[[], Any] | None = None,
        *,
        is_trainable: Any = True,
    ) -> Any:
        build = self._with_vocabulary() or model_init or (lambda: model)

        def begin(model: Any, key: Any) -> Any:
            return TrainerState.init(
                self.optimizer,
                model,
                key=key,
                is_trainable=is_trainable,
                mp=self.mp,
                quantization=self.config.quantization,
                model_averaging=self.config.model_averaging,
            )

        start = None if self.is_resumed else self.start
        if start is None:
            state = super().initial_state(training_key, model_init=build, is_trainable=is_trainable)
        elif start.optimizer_state:
            with reading(start.path):
                require_arrays(start.path, eqx.filter_eval_shape(lambda key: begin(build(), key), training_key))
            state = super().initial_state(training_key, model_init=build, is_trainable=is_trainable)
        else:
            mapping = self.parameter_axis_mapping
            make = named_jit(begin, axis_resources=mapping, out_axis_resources=mapping, donate_args=(True, False))
            state = make(self._load(start, eqx.filter_eval_shape(build)), training_key)
        if not self.is_resumed:
            self.first_model = state.model
            self.first_average = None if state.model_averaging is None else state.eval_model
        return state

    def _load(self, start: StartingPoint, shapes: Any) -> Any:
        """The weights of a starting point, on the devices."""
        log.info("beginning with the weights of %s", start.path)
        if start.is_hugging_face:
            return load_hf_weights(
                start.path, self.model_config, self.mp.param_dtype, self.parameter_axis_mapping, self.folder
            )
        with reading(start.path):
            require_arrays(start.path, shapes, below="model/")
        mapping, mesh = self.parameter_axis_mapping, self.device_mesh
        return levanter.checkpoint.load_checkpoint(shapes, start.path, subpath="model", axis_mapping=mapping, mesh=mesh)

    def _with_vocabulary(self) -> Callable[[], Any] | None:
        if self.vocab_size is None:
            return None
        model_key = jax.random.split(jax.random.PRNGKey(self.config.seed), 4)[2]  # as train_lm.main splits it
        Vocab = round_axis_for_partitioning(hax.Axis("vocab", self.vocab_size), self.parameter_axis_mapping)
        return lambda: self.model_config.build(Vocab, key=model_key)


@contextmanager
def beginning_with(start: StartingPoint | None, **settings: Any) -> Iterator[None]:
    """Let `train_lm` begin with a starting point, while the block runs. `settings`: fields of BeginningTrainer."""
    original = train_lm.Trainer
    train_lm.Trainer = type("Trainer", (BeginningTrainer,), {"start": start, **settings})
    try:
        yield
    finally:
        train_lm.Trainer = original


def load_hf_weights(path: str, model_config: Any, dtype: Any, mapping: Any, folder: str) -> Any:
    """The weights of a Hugging Face folder, on a disk or in a bucket, in this precision."""
    theirs = os.path.join(folder, "start")
    os.makedirs(theirs)
    # without the names of code in the folder, which transformers would run
    write_json(os.path.join(theirs, "config.json"), {k: v for k, v in read_hf_config(path).items() if k != "auto_map"})
    tokenizer = load_tokenizer(model_config.tokenizer)
    converter = model_config.hf_checkpoint_converter().replaced(reference_checkpoint=theirs, tokenizer=tokenizer)
    read = converter.load_state_dict
    where = path if "://" in path else os.path.abspath(path)
    object.__setattr__(converter, "load_state_dict", lambda _ref, dtype: read(where, dtype))
    return converter.load_pretrained(
        model_config.model_type, ref=theirs, config=model_config, axis_mapping=mapping, dtype=dtype
    )


def local_start(path: str, folder: str) -> str:
    """Return a local folder with the model: its own on a disk, a copy below `folder` otherwise."""
    path = local_path_of(path)
    if is_local(path):
        return absolute(path)
    local = join(folder, "start", os.path.basename(path.rstrip("/")))
    os.makedirs(local, exist_ok=True)
    for file in list_files(path):
        with open_to_read(file) as source, open(join(local, os.path.basename(file)), "wb") as copy:
            while block := source.read(16 * 1024**2):
                copy.write(block)
    return local


def first_model(config: Any, trainer: Any, converter: Any) -> Any:
    """Return the model before its first step, as `train_lm.main` reads it from `initialize_from_hf`."""
    mapping = trainer.parameter_axis_mapping
    model = converter.load_pretrained(
        config.model.model_type, config=config.model, axis_mapping=mapping, dtype=trainer.mp.compute_dtype
    )
    return named_jit(trainer.mp.cast_to_param, mapping)(model)


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
