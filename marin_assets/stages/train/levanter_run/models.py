"""Our model specs as Levanter's configs."""

from __future__ import annotations

import dataclasses
from typing import Any

from levanter.compat.hf_checkpoints import HFCompatConfig
from levanter.layers.rotary import DefaultRotaryEmbeddingsConfig, Llama3RotaryEmbeddingsConfig
from levanter.models.llama import LlamaConfig
from levanter.models.lm_model import LmConfig
from transformers import AutoConfig

from marin_assets.stages.train.config import LlamaSpec
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import read_hf_config
from marin_assets.stages.train.inputs.starting_point import StartingPoint
from marin_assets.stages.train.specs.model import OWN_HEAD_DIM, HuggingFaceModel, ModelSpec, shape_of

LEVANTER_NAMES = {"qwen2": "qwen"}
"""Family -> Levanter's name, where they differ."""
RENAMED = {
    "mixtral": {"num_experts": "n_routed_experts"},
    "qwen3_moe": {"intermediate_dim": "moe_intermediate_dim"},
}
"""Family -> our field -> Levanter's, where they differ."""
OWN = {"family", "rope", "rope_theta", "vocab_size"}
"""Fields of ModelSpec that are not Levanter's."""
NOT_OF_THE_RESULT = {
    "max_seq_len",
    "initializer_range",
    "gradient_checkpointing",
    "scan_layers",
    "upcast_attn",
    "use_flash_attention",
    "attn_backend",
    "flash_attention_block_size",
    "reference_checkpoint",
    "tokenizer",
}
"""Fields of a Levanter config that may differ from those of the weights that a run begins with."""
VOCABULARY = 1024
"""Any size: what is compared does not depend on it."""
OF_THE_RESULT = (
    "hidden_size",
    "intermediate_size",
    "moe_intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "attention_bias",
    "mlp_bias",
    "tie_word_embeddings",
    "layer_types",
    "num_local_experts",
    "num_experts",
    "num_experts_per_tok",
    "norm_topk_prob",
)
"""Fields of a Hugging Face config that change what the model computes."""


def model_config(model: Any, tokenizer: str) -> HFCompatConfig:
    """Levanter's config of a model. `tokenizer`: a local folder; without one, the export loads Llama 2 from the hub."""
    local = {"reference_checkpoint": tokenizer, "tokenizer": tokenizer}
    if isinstance(model, LlamaSpec):
        return LlamaConfig(**vars(model), gradient_checkpointing=False, **local)
    if isinstance(model, HuggingFaceModel):
        folder_config = config_of_folder(model.path)
        length = model.max_seq_len or folder_config.max_seq_len
        own = {"max_seq_len": length, "gradient_checkpointing": model.gradient_checkpointing}
        return dataclasses.replace(folder_config, **own, **local)
    return _from_spec(model, local)


def config_of_folder(path: str) -> HFCompatConfig:
    """Levanter's config of the model in a Hugging Face folder. Raises TrainError if it would compute something else."""
    folder = read_hf_config(path)
    theirs = AutoConfig.for_model(**folder)
    try:
        config: HFCompatConfig = config_class(folder["model_type"]).from_hf_config(theirs)
        back = config.to_hf_config(theirs.vocab_size).to_dict()
    except (KeyError, ValueError, NotImplementedError, TypeError) as error:
        raise TrainError(f"Levanter cannot take the model at {path!r}: {type(error).__name__}: {error}.") from error
    original = theirs.to_dict()
    for name in OF_THE_RESULT:
        if name in original and name in back and _plain(original[name]) != _plain(back[name]):
            raise TrainError(
                f"The model at {path!r} has {name}={original[name]!r}, and Levanter's {folder['model_type']} would "
                f"train it with {back[name]!r}. Use a model without this."
            )
    return config


def require_same_model(start: StartingPoint, config: Any) -> None:
    """Raise TrainError if the weights of a Hugging Face folder are those of another model than `config`."""
    if not start.is_hugging_face:
        return
    theirs = config_of_folder(start.path)
    if type(theirs) is not type(config):
        raise TrainError(
            f"{start.path!r} has a model of type {read_hf_config(start.path)['model_type']!r}, and this run's model is "
            f"another. Pass model_from_hf({start.path!r}) as the model."
        )
    for name in sorted(set(vars(theirs)) - NOT_OF_THE_RESULT):
        if getattr(theirs, name) != getattr(config, name):
            raise TrainError(
                f"{start.path!r} has a model with {name}={getattr(theirs, name)!r}, and this run's has "
                f"{getattr(config, name)!r}. Pass model_from_hf({start.path!r}) as the model."
            )


def config_class(family: str) -> Any:
    """Levanter's class for a family."""
    return LmConfig.get_known_choices()[LEVANTER_NAMES.get(family, family)]


def _from_spec(model: ModelSpec, local: dict[str, str]) -> HFCompatConfig:
    of_family = RENAMED.get(model.family, {})
    given = {of_family.get(name, name): value for name, value in vars(model).items() if name not in OWN}
    fields = {name: value for name, value in given.items() if value is not None}
    if model.family in OWN_HEAD_DIM:  # Levanter's default of some is not that of the shape
        fields["head_dim"] = int(shape_of(model).head_dim)
    config: HFCompatConfig = config_class(model.family)(**fields, rope=_rope(model), **local)
    _require_exported(model, config)
    return config


def _require_exported(model: ModelSpec, config: Any) -> None:
    """Raise TrainError if the export of the model would differ from the spec."""
    theta, scaling = config.rope.to_hf_config()
    expected = {"tie_word_embeddings": model.tie_word_embeddings, "rope_theta": theta, "rope_scaling": scaling}
    exported = config.to_hf_config(VOCABULARY).to_dict()
    for name, value in expected.items():
        if _plain(exported.get(name)) != _plain(value):
            raise TrainError(
                f"A model of family {model.family!r} with {name}={value!r} would be exported with "
                f"{exported.get(name)!r}. Use another family, or leave this out."
            )


def _rope(model: ModelSpec) -> Any:
    kind = Llama3RotaryEmbeddingsConfig if model.rope == "llama3" else DefaultRotaryEmbeddingsConfig
    return kind() if model.rope_theta is None else kind(theta=model.rope_theta)


def _plain(value: Any) -> Any:
    """A value in one form: without a scaling that does nothing, names as lower case, tuples as lists."""
    if isinstance(value, dict):
        kind = value.get("rope_type") or value.get("type") or "default"
        kept = {name: item for name, item in value.items() if name not in ("rope_type", "type")}
        return None if kind == "default" and kept.get("factor", 1.0) == 1.0 else {"rope_type": kind, **kept}
    if isinstance(value, str | tuple | list):
        return str(value).rpartition(".")[2].lower() if isinstance(value, str) else list(value)
    return value
