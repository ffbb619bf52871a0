"""A small model that reinforcement learning begins with, and a training that nothing disturbed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rl_training import rl_config, write_ending_llama

from marin_assets.stages.train.rl.train_rl import train_rl


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_ending_llama(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def plain(model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A training that nothing disturbed, which samples in its own process."""
    output = tmp_path_factory.mktemp("plain")
    return output, train_rl(rl_config(model, output))
