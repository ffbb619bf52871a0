"""Continue a text with a Levanter model, token by token.

Each new token is computed from the whole window (no cache of keys and values), which suits a few lines of a small
model. The window is padded to one length, so XLA compiles one program.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from marin_assets.inference.decoder import choose
from marin_assets.inference.jax_model import ModelError, logits_at, mesh_for, padded_length
from marin_assets.inference.tokenizer import ModelTokenizer

INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""The end of a text whose last token is a part of a character."""


def sample_text(
    model: Any,
    tokenizer: ModelTokenizer,
    prompt: str,
    *,
    max_tokens: int = 100,
    temperature: float = 0.8,
    seed: int = 0,
) -> Iterator[str]:
    """Yield the pieces of a continuation of `prompt`, until the end of the text or `max_tokens`.

    `temperature` divides the logits before the softmax; at 0 the likeliest token is taken. The same seed gives the same
    text on the same hardware. The model sees as many of the last tokens as its window holds. Raises ModelError for a
    temperature below 0 or no tokens to generate.
    """
    import numpy as np

    if temperature < 0 or max_tokens < 1:
        raise ModelError(
            f"Text is sampled with temperature={temperature!r} and max_tokens={max_tokens!r}, expected a temperature "
            "of at least 0 and at least one token."
        )
    random, predict = np.random.default_rng(seed), _compiled()
    ids = _with_bos(tokenizer, tokenizer.encode(prompt))
    window = padded_length(len(ids) + max_tokens, model.Pos.size)
    begin, shown = len(ids), ""
    for _ in range(max_tokens):
        tokens, context = np.zeros((1, window), np.int32), ids[-window:]
        tokens[0, : len(context)] = context
        with mesh_for(model):
            logits = np.asarray(predict(model, tokens, np.array([len(context) - 1], np.int32)))[0]
        token = choose(logits, temperature, random)
        if token in tokenizer.stop_token_ids:
            break
        ids.append(token)
        text = tokenizer.decode(ids[begin:], skip_special_tokens=True)
        if not text.endswith(INCOMPLETE):
            yield text[len(shown) :]
            shown = text
    rest = tokenizer.decode(ids[begin:], skip_special_tokens=True)[len(shown) :]
    if rest:
        yield rest


def _with_bos(tokenizer: ModelTokenizer, ids: list[int]) -> list[int]:
    """BOS as in training documents; an empty prompt needs some token."""
    if tokenizer.bos_token_id is None and ids:
        return ids
    return [tokenizer.first_token_id, *ids]


@cache
def _compiled() -> Any:
    """One function for all texts, so that XLA compiles it once for each model and window."""
    import haliax as hax

    return hax.named_jit(_last_logits)


def _last_logits(model: Any, tokens: Any, last: Any) -> Any:
    """The logits after each row's last position, (batch, vocabulary) in float32."""
    return logits_at(model, tokens, last[:, None])[:, 0]
