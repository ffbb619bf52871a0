"""Bodies of OpenAI's chat completions as those of completions: by the tokens of a chat template, or as a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.inspect_tasks.gateway import CHAT, TEXT, Body

PLAIN = frozenset(
    ("messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop", "n", "presence_penalty")
)
"""Fields of a request that mean the same in completions."""
ROLES = ("system", "user", "assistant")
"""Roles of messages that are texts alone."""


def by_template(tokenizer: ModelTokenizer, window: int) -> Callable[[Body], tuple[str, Body]]:
    """Messages as the tokens of the model's template. A request with more than messages stays as it is."""

    def translated(body: Body) -> tuple[str, Body]:
        if not _is_plain(body):
            return CHAT, body
        return TEXT, _with_prompt(body, tokenizer.encode_chat(body["messages"]), window)

    return translated


def by_texts(tokenizer: ModelTokenizer | None, window: int | None) -> Callable[[Body], tuple[str, Body]]:
    """The texts of messages, a blank line between two: as tokens behind BOS, or without a tokenizer as a text."""

    def translated(body: Body) -> tuple[str, Body]:
        if not _is_plain(body):
            raise ValueError(
                "A task sends tools or pictures, expected texts: the model is sent texts alone (as_text). Leave it out."
            )
        text = "\n\n".join(message["content"] for message in body["messages"])
        if tokenizer is None or window is None:
            return TEXT, {**_settings(body), "prompt": text}
        bos = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        return TEXT, _with_prompt(body, bos + tokenizer.encode(text), window)

    return translated


def as_messages(body: Body) -> tuple[str, Body]:
    """The body as it is: the server has the template."""
    return CHAT, body


def _is_plain(body: Body) -> bool:
    texts = (message.get("role") in ROLES and type(message.get("content")) is str for message in body["messages"])
    return PLAIN.issuperset(body) and all(texts) and not any(message.get("tool_calls") for message in body["messages"])


def _settings(body: Body) -> Body:
    settings = {name: value for name, value in body.items() if name != "messages"}
    if "max_completion_tokens" in settings:
        settings["max_tokens"] = settings.pop("max_completion_tokens")
    return settings


def _with_prompt(body: Body, ids: list[int], window: int) -> dict[str, Any]:
    return {"max_tokens": max(window - len(ids), 1), **_settings(body), "prompt": ids}
