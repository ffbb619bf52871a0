"""A small model that reinforcement learning begins with, and a training that nothing disturbed."""

from __future__ import annotations

import json
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from random_llama import write_random_llama
from rl_training import rl_config

from marin_assets.stages.train.rl.train_rl import train_rl

END_TOKENS = (",", ".", "Ċ")
WINDOW, EOS = 64, 1


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of random weights, which ends an answer at each comma, full stop or end of a line."""
    folder = tmp_path_factory.mktemp("model") / "hf"
    folder.mkdir()
    write_random_llama(folder, list(topics.values())[:50], WINDOW)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    ends = {"eos_token_id": [EOS, *(vocabulary[text] for text in END_TOKENS)]}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    return str(folder)


@pytest.fixture(scope="session")
def plain(model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A training that nothing disturbed, which samples in its own process."""
    output = tmp_path_factory.mktemp("plain")
    return output, train_rl(rl_config(model, output))
