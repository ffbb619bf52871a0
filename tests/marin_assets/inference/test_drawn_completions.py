"""The tokens and log-probabilities of an answer of vLLM, and what is no such answer."""

from __future__ import annotations

from typing import Any

import pytest

from marin_assets.inference.endpoint.answers import drawn_completion_of
from marin_assets.inference.engine import EngineError


def answer(**changes: Any) -> dict[str, Any]:
    choice = {
        "text": "a b",
        "finish_reason": "stop",
        "stop_reason": None,
        "token_ids": [5, 6, 1],
        "logprobs": {"token_logprobs": [-0.5, -1.0, -0.25]},
    }
    return {"choices": [{**choice, **changes}], "usage": {"completion_tokens": 3}}


@pytest.mark.parametrize("stop_reason", [None, 1])
def test_the_token_that_ends_an_answer_is_not_one_of_its_text_and_has_its_likelihood(stop_reason: int | None) -> None:
    completion = drawn_completion_of(answer(stop_reason=stop_reason))
    assert (completion.ids, completion.end_token, completion.finish) == ((5, 6), 1, "stop")
    assert completion.drawn_logprobs == (-0.5, -1.0, -0.25)


@pytest.mark.parametrize("end", [{"stop_reason": "b"}, {"finish_reason": "length"}])
def test_an_answer_that_a_text_or_the_length_ends_has_all_its_tokens(end: dict[str, Any]) -> None:
    completion = drawn_completion_of(answer(**end))
    assert (completion.ids, completion.end_token) == ((5, 6, 1), None)


@pytest.mark.parametrize(
    "changes",
    [
        {"token_ids": None},
        {"token_ids": [5, 6]},
        {"logprobs": None},
        {"logprobs": {"token_logprobs": [-0.5, None, -0.25]}},
        {"logprobs": {"token_logprobs": [-0.5, float("nan"), -0.25]}},
    ],
)
def test_an_answer_without_them_is_a_sentence(changes: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match=r"^The server answered with .*, as OpenAI's API has them\."):
        drawn_completion_of(answer(**changes))
