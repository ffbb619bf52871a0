"""The settings of a request that generates, as lm-eval's tasks have them."""

from __future__ import annotations

from typing import Any

from lm_eval.models.utils import normalize_gen_kwargs

from marin_assets.inference.jax_model import ModelError


def limits_of(settings: dict[str, Any], default_tokens: int) -> tuple[int, tuple[str, ...]]:
    """Return the most tokens to generate, and the stop texts. Raises ModelError for what cannot be generated."""
    normalized: dict[str, Any] = dict(normalize_gen_kwargs(settings, default_tokens))
    if normalized["do_sample"] and normalized["temperature"] > 0:
        raise ModelError(
            f"A task generates with {settings!r}, but answers are decoded greedily here. Set do_sample: false."
        )
    if normalized["max_gen_toks"] < 1:
        raise ModelError(f"A task generates {normalized['max_gen_toks']} tokens, expected one at least.")
    return normalized["max_gen_toks"], tuple(stop for stop in normalized["until"] if stop)


def until_stop(text: str, stops: tuple[str, ...]) -> str:
    """A text up to the first of these."""
    for stop in stops:
        text = text.split(stop)[0]
    return text
