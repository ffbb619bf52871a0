"""Read the config.json of a Hugging Face folder, and refuse a model that would come out wrong. Loads neither jax nor
transformers."""

from __future__ import annotations

import json
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.model import FAMILIES, HuggingFaceModel, Shape
from marin_resources.storage.files import exists, open_to_read, read_json, size_of, stored_files
from marin_resources.storage.paths import join

HAS_NO_WINDOW = ("mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
"""Families whose sliding window Levanter passes over: each token sees all before it."""
INDEX = "model.safetensors.index.json"
MOST_OF_A_HEAD = 100_000_000
"""Bytes; safetensors takes no longer one."""
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


def require_whole_weights(path: str) -> None:
    """Raise TrainError for a file of weights that is missing or cut. Only the heads of safetensors are read."""
    index = join(path, INDEX)
    if exists(index):
        names = sorted(set(read_json(index)["weight_map"].values()))
    else:
        below = [file.name for file in stored_files(path)]
        names = sorted(name for name in below if name.endswith(".safetensors") and "/" not in name)
    for name in names:
        file = join(path, name)
        if not exists(file):
            raise TrainError(f"The model at {path!r} has no {name!r}, which its {INDEX} names. Restore its files.")
        stored, whole = size_of(file), _bytes_in(file)
        if stored != whole:
            expected = "" if whole is None else f", expected {whole}"
            raise TrainError(
                f"The weights at {file!r} are damaged: they have {stored} bytes{expected}. Restore the file."
            )


def _bytes_in(file: str) -> int | None:
    """The size of a safetensors file by its own head; None if that is not readable."""
    with open_to_read(file) as head:
        length = int.from_bytes(head.read(8), "little")
        if length > MOST_OF_A_HEAD:
            return None
        try:
            entries = json.loads(head.read(length))
            ends = [entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"]
        except (ValueError, AttributeError, KeyError, TypeError, IndexError):
            return None
    return 8 + length + max(ends, default=0)


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
