"""Check the model that a training begins with, before jax and Levanter are loaded (3 s)."""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets.documents.caches.tokens import read_tokenizer
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import read_hf_config
from marin_assets.stages.train.specs.model import HuggingFaceModel, shape_of
from marin_assets.stages.train.specs.start import FromHuggingFace


def check_adaptation(config: TrainLmConfig) -> None:
    """Raise TrainError for a start whose model is of another shape."""
    if isinstance(config.start, FromHuggingFace):
        check_start(config.start, config)


def check_start(start: FromHuggingFace, config: TrainLmConfig) -> None:
    """Raise TrainError unless the folder has a model of the config's shape, with the tokens of its tokenizer."""
    actual = read_hf_config(start.path)
    model = config.model
    if isinstance(model, HuggingFaceModel):  # its shape is that of a folder
        return
    tokens = read_tokenizer(config.tokenizer_path).get_vocab_size()
    expected = {
        "model_type": shape_of(model).family,
        "vocab_size": getattr(model, "vocab_size", None) or tokens,
        "hidden_size": model.hidden_dim,
        "intermediate_size": model.intermediate_dim,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.num_heads,
        "num_key_value_heads": model.num_kv_heads,
        "tie_word_embeddings": model.tie_word_embeddings,
    }
    other = [name for name, value in expected.items() if actual.get(name) != value]
    if other:
        raise TrainError(
            f"The model at {start.path!r} has {_named(actual, other)}, and the training {_named(expected, other)}. "
            "Pass the shape and the tokenizer of that model."
        )


def _named(values: Mapping[str, object], names: list[str]) -> str:
    return ", ".join(f"{name}={values.get(name)!r}" for name in names)
