"""Caches of chats and of preferences about twice a digit, and a nano model to begin with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nano_training import WINDOW, nano_config
from sum_chats import doubles, preferences, successors, write_lines

from marin_assets.stages.tokenize.chat.templates import TEMPLATES
from marin_assets.stages.tokenize.chat.tokenize_chats import TokenizeChatsConfig, tokenize_chats
from marin_assets.stages.tokenize.chat.tokenize_preferences import TokenizePreferencesConfig, tokenize_preferences
from marin_assets.stages.train.train_lm import ChatSpec, FromHuggingFace, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value


@dataclass(frozen=True)
class Caches:
    tokenizer_path: str
    chats_path: str
    successors_path: str
    """Chats of another task."""
    preferences_path: str


@pytest.fixture(scope="session")
def caches(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> Caches:
    folder = tmp_path_factory.mktemp("caches")
    write_lines(folder / "chats/a.jsonl", doubles(2000))
    write_lines(folder / "successors/a.jsonl", successors(2000))
    write_lines(folder / "preferences/a.jsonl", preferences(1000, seed=1))
    common: dict[str, Any] = {
        "tokenizer_path": inputs.tokenizer_path,
        "chat_template": TEMPLATES["plain"],
        "max_seq_len": WINDOW,
        "validation_fraction": 0.1,
    }
    caches = Caches(
        inputs.tokenizer_path, *(f"{folder}/{name}-cache" for name in ("chats", "successors", "preferences"))
    )
    for name, output in (("chats", caches.chats_path), ("successors", caches.successors_path)):
        chats = TokenizeChatsConfig(chats_path=f"{folder}/{name}", output_path=output, **common)
        tokenize_chats(unwrap_versioned_value(chats))
    pairs = TokenizePreferencesConfig(
        preferences_path=f"{folder}/preferences", output_path=caches.preferences_path, **common
    )
    tokenize_preferences(unwrap_versioned_value(pairs))
    return caches


@pytest.fixture(scope="session")
def base_path(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that has seen some text."""
    output = tmp_path_factory.mktemp("base")
    train_lm(nano_config(TrainLmConfig, inputs, output, 7e-3, components=inputs.components, num_train_steps=30))
    return f"{output}/hf"


@pytest.fixture(scope="session")
def tuned(
    inputs: Any, caches: Caches, base_path: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """That model, trained on chats."""
    output = tmp_path_factory.mktemp("tuned")
    config = nano_config(
        TrainLmConfig,
        inputs,
        output,
        5e-3,
        components={"chats": caches.chats_path},
        start=FromHuggingFace(path=base_path),
        chat=ChatSpec(),
        num_train_steps=150,
    )
    return output, train_lm(config)
