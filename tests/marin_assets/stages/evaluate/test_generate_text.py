"""Texts that a model continues, as an output of a step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.generate_text import GenerateTextConfig, PromptError, generate_text
from marin_assets.step.values import unwrap_versioned_value

PROMPTS = ("The list of", "", "Ünicode: ")


def generate(model_path: str, output: Path, **fields: Any) -> tuple[dict[str, Any], list[dict[str, str]]]:
    fields = {"prompts": PROMPTS, "max_tokens": 8, **fields}
    config = GenerateTextConfig(model_path=model_path, output_path=str(output), **fields)
    result = generate_text(unwrap_versioned_value(config))
    return result, [json.loads(line) for line in (output / "generated.jsonl").read_text().splitlines()]


@pytest.mark.long  # as the other tests that compile a model
def test_each_prompt_is_continued_in_order_and_the_same_every_time(model_path: str, tmp_path: Path) -> None:
    result, rows = generate(model_path, tmp_path / "a")
    assert tuple(row["prompt"] for row in rows) == PROMPTS
    assert result["generated"] == rows
    assert result["characters"] == sum(len(row["text"]) for row in rows) > 0
    assert generate(model_path, tmp_path / "b") == (result, rows)
    _, others = generate(model_path, tmp_path / "c", seed=100)
    assert others != rows


@pytest.mark.long
def test_a_file_has_all_texts_and_a_result_the_first_ten(model_path: str, tmp_path: Path) -> None:
    result, rows = generate(model_path, tmp_path / "many", prompts=("The",) * 12, max_tokens=2)
    assert (result["prompts"], len(rows), len(result["generated"])) == (12, 12, 10)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fields", "error", "sentence"),
    [
        ({"prompts": ()}, PromptError, "has no prompts, expected at least one text"),
        ({"prompts": "The "}, PromptError, "has prompts='The ', expected texts"),
        ({"prompts": ("The ", 7)}, PromptError, "expected texts"),
        ({"temperature": -1.0}, ModelError, "expected a temperature of at least 0"),
    ],
)
def test_what_cannot_be_generated_is_one_sentence(
    model_path: str, tmp_path: Path, fields: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        generate(model_path, tmp_path, **fields)
    assert list(tmp_path.iterdir()) == []
