"""Read the answers of OpenAI's API. A server of somebody's may send anything."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

from marin_assets.inference.decoder import Completion
from marin_assets.inference.engine import EngineError

GREEDY_TOLERANCE = 1e-6
"""Nats: two tokens this close are equally likely."""


def choice_of(answer: Any) -> dict[str, Any]:
    """The first choice of an answer. Raises EngineError."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _nonsense(answer, "an object with a list 'choices'")
    return choices[0]


def text_of(answer: Any) -> str:
    """The text of a completion, or of the answer in a conversation. Raises EngineError."""
    choice = choice_of(answer)
    text = choice["message"].get("content") if isinstance(choice.get("message"), dict) else choice.get("text")
    if text is None and "message" in choice:
        return ""  # it has thought, and its tokens ended before it answered
    if not isinstance(text, str):
        raise _nonsense(answer, "a text in its choice")
    return text


def completion_of(answer: Any) -> Completion:
    """A completion without its tokens. Raises EngineError."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    counts = [usage.get(name) or 0 if isinstance(usage, dict) else 0 for name in ("completion_tokens", "prompt_tokens")]
    finish: Literal["stop", "length"] = "stop" if choice_of(answer).get("finish_reason") == "stop" else "length"
    return Completion(
        text=text_of(answer), ids=(), logprobs=(), finish=finish, tokens=counts[0], prompt_tokens=counts[1]
    )


def drawn_completion_of(answer: Any) -> Completion:
    """A completion with its tokens, and with the log-probabilities by which they were drawn, as vLLM gives them for
    `logprobs` and `return_token_ids`. Raises EngineError."""
    choice, completion = choice_of(answer), completion_of(answer)
    ids, logprobs = choice.get("token_ids"), choice.get("logprobs")
    drawn = logprobs.get("token_logprobs") if isinstance(logprobs, dict) else None
    if not isinstance(ids, list) or not isinstance(drawn, list) or len(ids) != len(drawn):
        raise _nonsense(answer, "'token_ids' of its answer, and as many log-probabilities")
    if not all(map(_is_number, drawn)):
        raise _nonsense(answer, "a log-probability of each token")
    ends_by_token = completion.finish == "stop" and ids and not isinstance(choice.get("stop_reason"), str)
    return replace(
        completion,
        ids=tuple(ids[:-1] if ends_by_token else ids),
        end_token=ids[-1] if ends_by_token else None,
        drawn_logprobs=tuple(drawn),
    )


def likelihood_of(answer: Any, length: int, count: int) -> tuple[float, bool]:
    """Return the log-likelihood of the last `count` of `length` echoed tokens in nats, and whether each is the
    likeliest. Raises EngineError for an answer without them."""
    logprobs = choice_of(answer).get("logprobs")
    if not isinstance(logprobs, dict):
        raise _nonsense(answer, "'logprobs' of the echoed prompt")
    own, top = logprobs.get("token_logprobs"), logprobs.get("top_logprobs")
    if not isinstance(own, list) or not isinstance(top, list) or min(len(own), len(top)) < length:
        raise _nonsense(answer, f"log-probabilities of the {length} tokens of the prompt and their rivals")
    own, top = own[length - count : length], top[length - count : length]
    if not all(map(_is_number, own)) or not all(isinstance(rivals, dict) and rivals for rivals in top):
        raise _nonsense(answer, "a number and the likeliest rival for each token")
    best = [max(rivals.values()) for rivals in top]
    return sum(own), all(mine >= most - GREEDY_TOLERANCE for mine, most in zip(own, best, strict=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _nonsense(answer: Any, expected: str) -> EngineError:
    return EngineError(
        f"The server answered with {answer!r:.200}, expected {expected}, as OpenAI's API has them. Serve the model "
        "with a server that does, such as vLLM."
    )
