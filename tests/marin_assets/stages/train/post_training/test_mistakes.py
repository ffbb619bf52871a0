"""Mistakes of a training on chats or preferences are a sentence each, before jax is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nano_training import nano_config
from sum_chats import doubles, write_lines

from marin_assets.stages.tokenize.chat.templates import TEMPLATES
from marin_assets.stages.tokenize.chat.tokenize_chats import TokenizeChatsConfig, tokenize_chats
from marin_assets.stages.train.config import LlamaSpec, TrainDpoConfig
from marin_assets.stages.train.specs.mixture import Mixture
from marin_assets.stages.train.train_dpo import train_dpo
from marin_assets.stages.train.train_lm import ChatSpec, FromHuggingFace, LoraSpec, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import write_json


@pytest.fixture(scope="module")
def start_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that says it has the model."""
    folder = tmp_path_factory.mktemp("start")
    shape = {
        "model_type": "llama",
        "vocab_size": 512,
        "hidden_size": 64,
        "intermediate_size": 192,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "tie_word_embeddings": True,
    }
    write_json(f"{folder}/config.json", shape)
    return str(folder)


SMALL = LlamaSpec(max_seq_len=32)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"chat": None}, "Component 'chats' .* has chats, and chat is None: their questions would be learnt too"),
        ({"model": SMALL}, "rows of up to 64 tokens, and the model a max_seq_len of 32: they would be cut"),
        ({"chat": ChatSpec(chats_per_sequence=0)}, "chats_per_sequence is 0, expected at least 1"),
        ({"components": "preferences"}, "has preferences, which train_lm cannot train on. Use default_dpo"),
        ({"components": "documents"}, r"chat is given, and none of the components \['most'\] has chats"),
        ({"start": None, "lora": LoraSpec()}, "lora adapts the model of a Hugging Face folder, and start is None"),
        ({"lora": LoraSpec(rank=0)}, "rank of LoRA is 0, expected at least 1"),
        ({"lora": LoraSpec(dropout=1.0)}, "dropout of LoRA is 1.0, expected a share"),
        ({"lora": LoraSpec(zero_factor="both")}, "zero_factor of LoRA is 'both', expected 'a' or 'b'. If both"),
        ({"lora": LoraSpec(target_modules=())}, r"target_modules of LoRA is \(\), expected names"),
        ({"start": FromHuggingFace(path="/nowhere")}, "'/nowhere' has no config.json, expected a Hugging Face folder"),
        (
            {"model": LlamaSpec(max_seq_len=64, num_layers=3)},
            "has num_hidden_layers=2, and the training num_hidden_layers=3",
        ),
    ],
)
def test_of_chats(
    inputs: Any, caches: Any, start_path: str, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    components = {
        "chats": {"chats": caches.chats_path},
        "preferences": {"chats": caches.chats_path, "preferences": caches.preferences_path},
        "documents": {"most": inputs.components["most"]},
    }
    start = {"components": "chats", "start": FromHuggingFace(path=start_path), "chat": ChatSpec(), **changes}
    start["components"] = components[start["components"]]
    with pytest.raises(ValueError, match=sentence):
        train_lm(nano_config(TrainLmConfig, inputs, tmp_path, 1e-3, **start))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"components": "chats"}, "has rows of the format 'chat', expected preferences"),
        ({"components": "two"}, r"components names \['a', 'b'\], expected one cache of preferences"),
        ({"components": "none"}, "Component 'a' has no cache at '/nowhere/train'"),
        ({"train_batch_size": 500}, "preferences on its validation side, expected at least one batch of 500"),
        ({"start": None}, "start is None, and DPO begins with the model of a Hugging Face folder"),
        ({"beta": 0.0}, "beta is 0.0, expected a number above 0"),
        ({"chat": ChatSpec()}, "train_weights and chat are of train_lm"),
        ({"model": SMALL}, "rows of up to 64 tokens, and the model a max_seq_len of 32"),
        ({"lora": LoraSpec(), "reference": "start"}, "With lora the reference is the model below the factors"),
        ({"reference": "nowhere"}, "'/nowhere' has no config.json"),
    ],
)
def test_of_preferences(
    inputs: Any, caches: Any, start_path: str, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    components = {
        "preferences": {"a": caches.preferences_path},
        "chats": {"a": caches.chats_path},
        "two": {"a": caches.preferences_path, "b": caches.preferences_path},
        "none": {"a": "/nowhere"},
    }
    start = {"components": "preferences", "start": FromHuggingFace(path=start_path), **changes}
    start["components"] = components[start["components"]]
    if "reference" in start:
        start["reference"] = FromHuggingFace(path={"start": start_path, "nowhere": "/nowhere"}[start["reference"]])
    with pytest.raises(ValueError, match=sentence):
        train_dpo(nano_config(TrainDpoConfig, inputs, tmp_path, 1e-3, **start))


def test_two_chat_templates_in_one_training_are_a_sentence(
    inputs: Any, caches: Any, start_path: str, tmp_path: Path
) -> None:
    write_lines(tmp_path / "rows/a.jsonl", doubles(60))
    config = TokenizeChatsConfig(
        chats_path=f"{tmp_path}/rows",
        tokenizer_path=inputs.tokenizer_path,
        chat_template=TEMPLATES["tulu"],
        max_seq_len=64,
        output_path=f"{tmp_path}/cache",
    )
    tokenize_chats(unwrap_versioned_value(config))
    components = {"chats": caches.chats_path, "other": f"{tmp_path}/cache"}
    settings = nano_config(TrainLmConfig, inputs, tmp_path, 1e-3, components=components, chat=ChatSpec())
    with pytest.raises(ValueError, match=r"\['chats', 'other'\] were tokenized with different chat templates"):
        train_lm(settings)


@pytest.mark.parametrize(
    ("chat", "changes", "sentence"),
    [
        (None, {}, "Component 'chats' .* has chats, and chat is None"),
        (ChatSpec(), {"num_layers": 3}, "has num_hidden_layers=2, and the training num_hidden_layers=3"),
    ],
)
def test_of_chats_in_a_mixture(
    inputs: Any, caches: Any, start_path: str, tmp_path: Path, chat: Any, changes: dict[str, int], sentence: str
) -> None:
    members = {"chats": caches.chats_path, "documents": inputs.components["most"]}
    mixture = Mixture(components=members, weights={"chats": 0.5, "documents": 0.5}, block_size=64)
    model = LlamaSpec(max_seq_len=64, **changes)
    start = {"start": FromHuggingFace(path=start_path), "chat": chat, "mixture": mixture, "model": model}
    with pytest.raises(ValueError, match=sentence):
        train_lm(nano_config(TrainLmConfig, inputs, tmp_path, 1e-3, components={}, **start))
