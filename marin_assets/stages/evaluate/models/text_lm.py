"""A model behind an endpoint with lm-eval's interface, by texts: no tokenizer of it is here.

It generates: a context is sent as it is, or as the messages of a conversation, to which the server applies its own
template. It scores no given answer, which takes tokens. This module imports lm-eval at the top: import it inside
functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from marin_assets.inference.endpoint.answers import text_of
from marin_assets.inference.endpoint.client import EndpointClient
from marin_assets.inference.generator import TextPrompt, text_body_of
from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.models.generation_settings import limits_of, until_stop
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, KeptAnswers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.token_lm import DEFAULT_GENERATED_TOKENS


class TextLM(LM):
    """Greedy generation of an endpoint's model, from texts or messages."""

    def __init__(self, client: EndpointClient) -> None:
        super().__init__()
        self._client = client
        self._has_chats = False
        self.kept_answers = KeptAnswers()
        self.shortened = 0

    def check(self, request: Instance) -> None:
        """Raise ModelError for a request that cannot be answered. The model is not run."""
        if request.request_type != "generate_until":
            raise ModelError(
                f"It scores given answers ({request.request_type}), which takes the tokenizer of the endpoint's model "
                f"{self._client.endpoint.model!r}. Pass the folder of an export that has it."
            )
        limits_of(request.args[1], DEFAULT_GENERATED_TOKENS)

    def is_cut(self, arguments: Sequence[Any]) -> bool:
        """A text that is too long is refused by the server."""
        return False

    @property
    def tokenizer_name(self) -> str:
        return self._client.endpoint.model

    def chat_template(self, chat_template: bool | str = False) -> str:
        """It is the server's."""
        return ""

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The messages, as JSON. Raises ModelError for a conversation whose last turn the model is to continue."""
        if not add_generation_prompt:
            raise ModelError(
                "A task begins the model's answer itself (gen_prefix), which a server that applies its own template "
                "cannot continue. Pass the folder of an export with the tokenizer, or leave the task out."
            )
        self._has_chats = True
        return json.dumps(chat_history, ensure_ascii=False)

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> NoReturn:
        raise AssertionError("such requests are refused before")

    loglikelihood_rolling = loglikelihood

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Return greedy continuations, each truncated at its first stop text."""
        limits = [limits_of(request.args[1], DEFAULT_GENERATED_TOKENS) for request in requests]
        prompts = [
            TextPrompt(text=self._text(request.args[0]), max_tokens=count, stops=stops)
            for request, (count, stops) in zip(requests, limits, strict=True)
        ]
        with self.kept_answers.of("generations", (repr(prompt).encode() for prompt in prompts)) as answers:
            remaining = [i for i in range(len(prompts)) if i not in answers.rows]
            progress = LoggedProgress("generations", len(remaining))

            def take(number: int, answer: dict[str, Any]) -> None:
                i = remaining[number]
                answers.add({"place": i, ANSWER: until_stop(text_of(answer), prompts[i].stops)})
                progress.advance(1)

            path = "/v1/chat/completions" if self._has_chats else "/v1/completions"
            self._client.map(path, (text_body_of(prompts[i]) for i in remaining), take)
        return [answers.rows[i][ANSWER] for i in range(len(prompts))]

    def _text(self, context: str) -> str | tuple[dict[str, str], ...]:
        return tuple(json.loads(context)) if self._has_chats else context
