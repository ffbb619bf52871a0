"""Functions that `score_by_function` takes by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

NO_FUNCTION = 5
BATCHES: list[int] = []
"""Texts of each batch, in this process."""


def by_length(model_path: str | None, *, unit: float = 1.0) -> Callable[[list[str]], Any]:
    def score(texts: list[str]) -> list[float]:
        BATCHES.append(len(texts))
        return [len(text) / unit for text in texts]

    return score


def by_words_of_a_model(model_path: str) -> Callable[[list[str]], Any]:
    weights = json.loads((Path(model_path) / "weights.json").read_text())
    return lambda texts: [
        {"value": sum(weights.get(word, 0) for word in text.split()), "words": len(text.split())} for text in texts
    ]


def by_numpy(model_path: str | None) -> Callable[[list[str]], Any]:
    import numpy as np

    return lambda texts: np.array([len(text) for text in texts], np.float32)


def one_too_few(model_path: str | None) -> Callable[[list[str]], Any]:
    return lambda texts: [1.0] * (len(texts) - 1)


def not_a_number(model_path: str | None) -> Callable[[list[str]], Any]:
    return lambda texts: [float("nan") for _ in texts]


def with_a_reserved_key(model_path: str | None) -> Callable[[list[str]], Any]:
    return lambda texts: [{"value": 1, "keep": True} for _ in texts]


def no_scorer(model_path: str | None) -> float:
    return 0.5
