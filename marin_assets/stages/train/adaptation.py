"""Check the model that a training begins with, and what of it is trained, before jax and Levanter are loaded (3 s)."""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.formats import metadata_of
from marin_assets.stages.train.lora import check_lora
from marin_assets.stages.train.start import StartFromHf
from marin_resources.storage.files import exists, read_json
from marin_resources.storage.paths import join


def check_adaptation(config: TrainLmConfig) -> None:
    """Raise TrainError for a start of another shape, or a LoRA that trains nothing."""
    if config.lora is not None:
        check_lora(config.lora, has_start=config.start is not None)
    if config.start is not None:
        check_start(config.start, config)


def check_start(start: StartFromHf, config: TrainLmConfig) -> None:
    """Raise TrainError unless the folder has a model of the config's shape, with the tokens of its tokenizer."""
    vocab_size = metadata_of(next(iter(config.components.values())))["vocab_size"]
    _check_start(start, config.model, vocab_size)


def _check_start(start: StartFromHf, model: LlamaSpec, vocab_size: int) -> None:
    """Raise TrainError unless the folder has a model of this shape, with this many tokens."""
    path = join(start.path, "config.json")
    if not exists(path):
        raise TrainError(
            f"{start.path!r} has no 'config.json', expected the folder of a Hugging Face export. Pass for example 'hf' "
            "below a training step's output."
        )
    found = read_json(path)
    wanted = {
        "vocab_size": vocab_size,
        "hidden_size": model.hidden_dim,
        "intermediate_size": model.intermediate_dim,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.num_heads,
        "num_key_value_heads": model.num_kv_heads,
        "tie_word_embeddings": model.tie_word_embeddings,
    }
    other = [name for name, value in wanted.items() if found.get(name) != value]
    if other:
        raise TrainError(
            f"The model at {start.path!r} has {_named(found, other)}, and the training {_named(wanted, other)}. "
            "Pass the shape and the tokenizer of that model."
        )


def _named(values: Mapping[str, object], names: list[str]) -> str:
    return ", ".join(f"{name}={values.get(name)!r}" for name in names)
