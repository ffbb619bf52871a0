"""Read the config.json of a Hugging Face folder, and refuse a model that would come out wrong. Loads neither jax nor
transformers."""

from __future__ import annotations

from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.model import FAMILIES, HuggingFaceModel, Shape
from marin_resources.storage.files import exists, read_json
from marin_resources.storage.paths import join

HAS_NO_WINDOW = ("mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
"""Families whose sliding window Levanter passes over: each token sees all before it."""
WRONG = {
    "gemma2": "Levanter's Gemma 2 differs from transformers' beyond the sliding window (logits by 2.6)",
    "gemma3": "Levanter's Gemma 3 has full attention and one rotary base in all layers (logits differ by 2.5)",
    "gemma3_text": "Levanter's Gemma 3 has full attention and one rotary base in all layers (logits differ by 2.5)",
}


def read_hf_config(path: str) -> dict[str, Any]:
    """The config.json of a folder. Raises TrainError if it is not there, or of a family that cannot be trained."""
    file = join(path, "config.json")
    if not exists(file):
        raise TrainError(
            f"{path!r} has no config.json, expected a Hugging Face folder. Pass one, such as output_path_of(step, "
            '"hf") of a training.'
        )
    config: dict[str, Any] = read_json(file)
    family = config.get("model_type")
    if family in WRONG:
        raise TrainError(
            f"{path!r} has a model of type {family!r}. {WRONG[family]}, so it is not trained. Use one of "
            f"{', '.join(FAMILIES)}."
        )
    if family not in FAMILIES:
        raise TrainError(f"{path!r} has a model of type {family!r}, expected one of {', '.join(FAMILIES)}.")
    return config


def hf_shape(model: HuggingFaceModel) -> Shape:
    """The shape in the folder, with the length of the training sequences. Raises TrainError."""
    config = read_hf_config(model.path)
    longest: int = config["max_position_embeddings"]
    length = model.max_seq_len or longest
    if length > longest:
        raise TrainError(
            f"max_seq_len is {length}, and the model at {model.path!r} takes at most {longest} tokens. Lower it."
        )
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    if config["model_type"] in HAS_NO_WINDOW and window is not None and window < length:
        raise TrainError(
            f"The model at {model.path!r} has a sliding window of {window} tokens, which Levanter's "
            f"{config['model_type']} does not have, and max_seq_len is {length}. Set max_seq_len to {window} or less."
        )
    heads = config["num_attention_heads"]
    return Shape(
        family=config["model_type"],
        max_seq_len=length,
        hidden_dim=config["hidden_size"],
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or config["hidden_size"] / heads,
    )
