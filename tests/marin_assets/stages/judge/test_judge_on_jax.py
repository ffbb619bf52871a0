"""A judge of random weights on our JAX model: its verdicts are nonsense, and the same in this process and served."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_llama import write_random_llama
from rule_judge import TEMPLATE

from marin_assets.inference.engine import JAX, Engine
from marin_assets.inference.generator import open_generator
from marin_assets.stages.judge.compare_answers import CompareAnswersConfig, compare_answers
from marin_assets.step.values import unwrap_versioned_value

WINDOW = 1024
TEXTS = ["Which answer is better, A or B? Reply with one letter. " * 20]
Write = Callable[[str, list[Mapping[str, Any]]], str]


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("hf")
    write_random_llama(folder, TEXTS, WINDOW)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": TEMPLATE}))
    return str(folder)


def scores_of(engine: Engine | None, model_path: str) -> list[float]:
    texts, found = [[0, *range(10, 10 + length)] for length in (1, 7, 40, 3)], dict[int, float]()
    with open_generator(engine, model_path) as generator:
        generator.score_last(texts, lambda number, logprob: found.update({number: logprob}))
    return [found[number] for number in range(len(texts))]


def test_the_last_token_has_its_log_probability(model_path: str) -> None:
    from marin_assets.inference.jax_model import bound, load_model, logits_at

    logits_of = bound(logits_at, load_model(model_path)[0])
    text = [0, *range(10, 17)]
    padded = np.zeros((1, 64), np.int32)
    padded[0, : len(text)] = text
    logits = np.asarray(logits_of(padded, np.array([[len(text) - 2]], np.int32)), np.float64)[0, 0]
    expected = logits[text[-1]] - np.log(np.exp(logits).sum())
    assert scores_of(None, model_path)[1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.long
def test_a_server_gives_the_same_scores(model_path: str) -> None:
    served = scores_of(unwrap_versioned_value(JAX), model_path)
    assert served == pytest.approx(scores_of(None, model_path), abs=1e-4)


def test_a_judge_of_random_weights_gives_preferences_or_is_counted(
    write: Write, model_path: str, tmp_path: Path
) -> None:
    rows = [{"instruction": f"Say {n}.", "output": str(n)} for n in range(4)]
    config = CompareAnswersConfig(
        answers_path=write("mine", rows),
        baseline_path=write("theirs", [{**row, "output": "no"} for row in rows]),
        judge_path=model_path,
        output_path=str(tmp_path / "output"),
        both_orders=True,
        least_mass=0.0,
    )
    result = compare_answers(unwrap_versioned_value(config))
    assert (result["judged"], result["judgements"], result["unreadable"]) == (4, 8, 0)
    assert 0 < result["win_rate"] < 1
    strict = compare_answers(
        unwrap_versioned_value(
            CompareAnswersConfig(**{**vars(config), "least_mass": 0.9, "output_path": str(tmp_path / "strict")})
        )
    )
    assert (strict["unreadable"], strict["judged"], strict["unjudged_share"]) == (8, 0, 1)
    assert math.isfinite(result["first_preferred"])
