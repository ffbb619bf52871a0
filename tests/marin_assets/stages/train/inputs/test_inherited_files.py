"""A model that is trained on keeps the tokens at which it stops, and its chat template."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizer_settings import change_json

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.inherited_files import chat_template_of_start, generation_config
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace
from marin_assets.stages.train.train_lm import TrainLmConfig
from marin_assets.step.values import unwrap_versioned_value

CHAT_MODEL = {"eos_token_id": [7, 1], "temperature": 0.6, "pad_token_id": 2}


@pytest.fixture
def config(inputs: Any, tmp_path: Path) -> TrainLmConfig:
    """A training on documents, which begins with a chat model."""
    config = TrainLmConfig(
        components=inputs.components,
        tokenizer_path=inputs.tokenizer_path,
        output_path=str(tmp_path / "out"),
        start=FromHuggingFace(path=str(tmp_path)),
    )
    found: TrainLmConfig = unwrap_versioned_value(config)
    return found


def said(config: TrainLmConfig, *, bos: int | None = 0, eos: int | None = 1) -> dict[str, Any]:
    return generation_config(config, bos=bos, eos=eos)


def test_a_new_model_stops_at_its_tokenizers_eos(config: TrainLmConfig) -> None:
    assert said(replace(config, start=None)) == {"eos_token_id": [1], "bos_token_id": 0}
    assert said(replace(config, start=None), bos=None, eos=None) == {}
    checkpoint = FromCheckpoint(checkpoints_path="nowhere")
    assert said(replace(config, start=checkpoint), bos=None) == {"eos_token_id": [1]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CHAT_MODEL, {"eos_token_id": [1, 7], "temperature": 0.6, "pad_token_id": 2, "bos_token_id": 0}),
        ({"eos_token_id": 7, "bos_token_id": 5}, {"eos_token_id": [1, 7], "bos_token_id": 0}),
        ({"eos_token_id": None}, {"eos_token_id": [1], "bos_token_id": 0}),
    ],
)
def test_a_chat_model_keeps_what_it_says_of_generation(
    config: TrainLmConfig, tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps(before))
    assert said(config) == after


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_damaged_generation_config_is_one_sentence(config: TrainLmConfig, tmp_path: Path, content: str) -> None:
    (tmp_path / "generation_config.json").write_text(content)
    with pytest.raises(
        TrainError, match=r"generation_config.json' is damaged, expected a JSON object\. Download it ag"
    ):
        said(config)


@pytest.mark.parametrize(
    ("files", "template"),
    [
        ({}, None),
        ({"tokenizer_config.json": json.dumps({"chat_template": "a"}), "chat_template.jinja": "b"}, "a"),
        ({"tokenizer_config.json": "{}", "chat_template.jinja": "b"}, "b"),
        (
            {
                "tokenizer_config.json": json.dumps(
                    {"chat_template": [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]}
                )
            },
            "d",
        ),
    ],
)
def test_a_tokenizer_without_a_chat_template_gets_that_of_the_start(
    inputs: Any, tmp_path: Path, files: dict[str, str], template: str | None
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    start = FromHuggingFace(path=str(tmp_path))
    assert chat_template_of_start(start, inputs.tokenizer_path) == template
    assert chat_template_of_start(None, inputs.tokenizer_path) is None
    shutil.copytree(inputs.tokenizer_path, tmp_path / "own")
    change_json(tmp_path / "own/tokenizer_config.json", lambda found: found.update(chat_template="mine"))
    assert chat_template_of_start(start, f"{tmp_path}/own") is None
