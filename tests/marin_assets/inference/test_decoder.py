"""The decoder keeps what it drew: the token that ended a text, and the likelihoods at the temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_llama import write_random_llama

from marin_assets.inference.decoder import Completion, Decoder, Prompt
from marin_assets.inference.jax_model import hidden_of, load_model, logits_of

STOPS = tuple(range(3, 120))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return load_model(write_random_llama(tmp_path_factory.mktemp("model"), ["one two three"], 64))


def complete(decoder: Decoder, **changes: Any) -> dict[int, Completion]:
    prompts = [
        Prompt(ids=(0, number), max_tokens=12, stop_ids=STOPS, seed=number, temperature=0.6, **changes)
        for number in range(130, 150)
    ]
    return dict(decoder.run(prompts))


def drawn_tokens(completion: Completion) -> list[int]:
    return [*completion.ids, *([] if completion.end_token is None else [completion.end_token])]


def test_drawn_likelihoods_are_those_of_the_softmax_at_the_temperature_and_have_the_end_token(
    opened: tuple[Any, Any],
) -> None:
    model, tokenizer = opened
    completions = complete(Decoder(model, tokenizer, rows=8), keeps_drawn_logprobs=True)
    ended = [completion for completion in completions.values() if completion.end_token is not None]
    assert ended
    assert all(completion.end_token in STOPS and completion.finish == "stop" for completion in ended)
    rows = np.zeros((len(completions), 16), np.int32)
    for number, completion in completions.items():
        drawn = drawn_tokens(completion)
        assert len(completion.drawn_logprobs) == len(drawn) == completion.tokens + (completion.end_token is not None)
        rows[number, : 2 + len(drawn)] = 0, number + 130, *drawn
    logits = np.asarray(logits_of(model, hidden_of(model, rows))).astype(np.float64) / 0.6
    logprobs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for number, completion in completions.items():
        drawn = drawn_tokens(completion)
        expected = logprobs[number, range(1, 1 + len(drawn)), drawn]
        np.testing.assert_allclose(completion.drawn_logprobs, expected, atol=1e-5)


def test_texts_do_not_depend_on_what_is_kept(opened: tuple[Any, Any]) -> None:
    plain, kept = (complete(Decoder(*opened, rows=8), keeps_drawn_logprobs=keeps) for keeps in (False, True))
    assert {number: each.ids for number, each in plain.items()} == {n: each.ids for n, each in kept.items()}
    assert all(completion.drawn_logprobs == () for completion in plain.values())


def test_weights_are_replaced_without_compiling_again(opened: tuple[Any, Any]) -> None:
    import jax

    model, tokenizer = opened
    decoder = Decoder(model, tokenizer, rows=8)
    before = complete(decoder)
    compiled = decoder._next_logits.func._cache_size()  # type: ignore[attr-defined]
    decoder.replace_weights(jax.tree.map(lambda leaf: leaf * 0.5 if hasattr(leaf, "dtype") else leaf, model))
    other = complete(decoder)
    decoder.replace_weights(model)
    assert complete(decoder) == before
    assert other != before
    assert decoder._next_logits.func._cache_size() == compiled  # type: ignore[attr-defined]
