"""Whether an endpoint takes the settings of sampled answers: top_k, for example, is vLLM's, and OpenAI refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marin_assets.inference.endpoint.client import EndpointClient
from marin_assets.inference.engine import RequestError
from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.models.generation_settings import GenerationSettings

PROBE = "The sky is blue."


class SamplingProbe:
    """Requests one token with each combination of settings, once."""

    def __init__(self, client: EndpointClient) -> None:
        self._client = client
        self._refusals: dict[Any, str] = {}
        """The settings -> the reason for which they are refused, empty if they are not."""

    def check(
        self, settings: GenerationSettings, path: str, body: Callable[[GenerationSettings], dict[str, Any]]
    ) -> None:
        """Raise ModelError if the endpoint refuses the settings. `body` makes a request at `path`, of one token."""
        if not settings.temperature and not settings.sampling:
            return
        drawn = (("temperature", settings.temperature), *settings.sampling)
        if drawn not in self._refusals:
            try:
                self._client.post(path, body(settings))
                self._refusals[drawn] = ""
            except RequestError as error:
                self._refusals[drawn] = str(error)
        if refusal := self._refusals[drawn]:
            named = ", ".join(f"{name}={value!r}" for name, value in drawn)
            raise ModelError(f"A task generates with {named}. {refusal}")
