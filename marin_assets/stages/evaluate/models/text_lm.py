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

from marin_assets.inference.completion_fields import SAMPLING
from marin_assets.inference.endpoint.answers import text_of
from marin_assets.inference.endpoint.client import EndpointClient
from marin_assets.inference.generator import TextPrompt, text_body_of
from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.models.generation_settings import (
    GenerationSettings,
    name_of,
    seeds_of,
    settings_of,
    until_stop,
)
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, KeptAnswers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.sampling_probe import PROBE, SamplingProbe
from marin_assets.stages.evaluate.models.token_lm import DEFAULT_GENERATED_TOKENS


class TextLM(LM):
    """Generation of an endpoint's model, from texts or messages."""

    def __init__(self, client: EndpointClient) -> None:
        super().__init__()
        self._client = client
        self._has_chats = False
        self._sampling_probe = SamplingProbe(client)
        self.kept_answers = KeptAnswers()
        self.shortened = 0
        self.seed = 0
        """As of a TokenLM."""

    def check(self, request: Instance) -> None:
        """Raise ModelError for a request that cannot be answered. The first one of each kind of sampled answer has the
        server write a token, to see whether it takes the settings."""
        if request.request_type != "generate_until":
            raise ModelError(
                f"It scores given answers ({request.request_type}), which takes the tokenizer of the endpoint's model "
                f"{self._client.endpoint.model!r}. Pass the folder of an export that has it."
            )
        self._sampling_probe.check(_settings(request), self._path, self._probe_of)

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
        """Return continuations as TokenLM does."""
        seeds = seeds_of(requests, self.seed)
        prompts = [self._prompt(request, seed) for request, seed in zip(requests, seeds, strict=True)]
        with self.kept_answers.of("generations", map(name_of, prompts)) as answers:
            remaining = [i for i in range(len(prompts)) if i not in answers.rows]
            progress = LoggedProgress("generations", len(remaining))

            def take(number: int, answer: dict[str, Any]) -> None:
                i = remaining[number]
                answers.add({"place": i, ANSWER: until_stop(text_of(answer), prompts[i].stops)})
                progress.advance(1)

            self._client.map(self._path, (text_body_of(prompts[i]) for i in remaining), take)
        return [answers.rows[i][ANSWER] for i in range(len(prompts))]

    @property
    def _path(self) -> str:
        return "/v1/chat/completions" if self._has_chats else "/v1/completions"

    def _prompt(self, request: Instance, seed: int) -> TextPrompt:
        settings = _settings(request)
        return TextPrompt(
            text=self._text(request.args[0]),
            max_tokens=settings.max_tokens,
            stops=settings.stops,
            temperature=settings.temperature,
            seed=seed if settings.temperature else 0,
            sampling=settings.sampling,
        )

    def _probe_of(self, settings: GenerationSettings) -> dict[str, Any]:
        text: Any = ({"role": "user", "content": PROBE},) if self._has_chats else PROBE
        prompt = TextPrompt(text=text, max_tokens=1, temperature=settings.temperature, sampling=settings.sampling)
        return text_body_of(prompt)

    def _text(self, context: str) -> str | tuple[dict[str, str], ...]:
        return tuple(json.loads(context)) if self._has_chats else context


def _settings(request: Instance) -> GenerationSettings:
    return settings_of(request.args[1], DEFAULT_GENERATED_TOKENS, "the endpoint", SAMPLING)
