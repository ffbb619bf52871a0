"""Continue prompts with a model, on whatever engine: in this process on JAX, or by a server beside it."""

from __future__ import annotations

import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from marin_assets.inference.decoder import Completion, Decoder, Prompt
from marin_assets.inference.endpoint.answers import completion_of, likelihood_of
from marin_assets.inference.endpoint.client import EndpointClient
from marin_assets.inference.engine import Endpoint, Engine, EngineError, reads_weights
from marin_assets.inference.jax_model import ModelError, load_model, replicate
from marin_assets.inference.local_copy import WEIGHTS, copy_to_local
from marin_assets.inference.model_servers import ModelServers
from marin_assets.inference.scorer import Scorer
from marin_assets.inference.tokenizer import ModelTokenizer

ROWS = 32
"""Texts of a batch on JAX in this process."""
SCORING_ROOM = 1
"""Tokens of the window that a scored text cannot have: a server generates one behind it."""


class Generator(ABC):
    """Completes prompts. `max_length` is the window for a prompt and its answer, in tokens."""

    tokenizer: ModelTokenizer
    max_length: int

    @abstractmethod
    def run(self, prompts: Iterable[Prompt], on_completion: Callable[[int, Completion], None]) -> None:
        """Call `on_completion` with the number of a prompt and its completion, as they end.

        `prompts` is read only as far as the engine has room. Raises ModelError for a prompt that does not fit,
        EngineError for a server that does not come back.
        """

    def score_last(self, texts: Iterable[Sequence[int]], on_logprob: Callable[[int, float], None]) -> None:
        """Call `on_logprob` with the number of a text and the log-probability of its last token, in nats.

        A text has at least two tokens, and SCORING_ROOM fewer than the window. Raises EngineError for an engine that
        has no log-probabilities of given tokens, else as `run`.
        """
        raise EngineError(
            f"{type(self).__name__} has no log-probabilities of given tokens, expected an engine with them. Use TORCH, "
            "VLLM, JAX or None, or what needs texts alone."
        )


@dataclass(frozen=True, kw_only=True)
class TextPrompt:
    """A prompt for a model whose tokenizer is not here: a text, or the messages of a conversation."""

    text: str | tuple[dict[str, str], ...]
    max_tokens: int
    stops: tuple[str, ...] = ()
    temperature: float = 0.0
    seed: int = 0
    sampling: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    """As of a Prompt."""


class TextGenerator:
    """A model behind an endpoint, which reads texts and messages."""

    def __init__(self, client: EndpointClient) -> None:
        self._client = client

    def run(self, prompts: Iterable[TextPrompt], on_completion: Callable[[int, Completion], None]) -> None:
        """As Generator.run; the prompts are all texts, or all messages."""
        iterator = iter(prompts)
        if (first := next(iterator, None)) is None:
            return
        path = "/v1/completions" if isinstance(first.text, str) else "/v1/chat/completions"

        def take(number: int, answer: Mapping[str, Any]) -> None:
            on_completion(number, completion_of(answer))

        self._client.map(path, map(text_body_of, chain([first], iterator)), take)


class JaxGenerator(Generator):
    """A Levanter model in this process."""

    def __init__(self, model: Any, tokenizer: ModelTokenizer, *, rows: int = ROWS) -> None:
        import jax

        model = replicate(model, jax.local_devices())  # once for both
        self._decoder, self._scorer = Decoder(model, tokenizer, rows=rows), Scorer(model, rows=rows)
        self.tokenizer, self.max_length = tokenizer, self._decoder.max_length

    def run(self, prompts: Iterable[Prompt], on_completion: Callable[[int, Completion], None]) -> None:
        for number, completion in self._decoder.run(prompts):
            on_completion(number, completion)

    def score_last(self, texts: Iterable[Sequence[int]], on_logprob: Callable[[int, float], None]) -> None:
        numbered = enumerate(texts)
        while batch := list(islice(numbered, ROWS)):
            for (number, _), scores in zip(batch, self._scorer.score([ids for _, ids in batch]), strict=True):
                on_logprob(number, scores.logprobs[-1])


class ServedGenerator(Generator):
    """A model behind a server."""

    def __init__(self, server: ModelServers | EndpointClient, tokenizer: ModelTokenizer, *, window: int) -> None:
        self._server = server
        self.tokenizer, self.max_length = tokenizer, window

    def run(self, prompts: Iterable[Prompt], on_completion: Callable[[int, Completion], None]) -> None:
        def take(number: int, answer: Mapping[str, Any]) -> None:
            on_completion(number, completion_of(answer))

        self._server.map("/v1/completions", map(body_of, prompts), take)

    def score_last(self, texts: Iterable[Sequence[int]], on_logprob: Callable[[int, float], None]) -> None:
        lengths: dict[int, int] = {}

        def bodies() -> Iterator[dict[str, Any]]:
            for number, ids in enumerate(texts):
                lengths[number] = len(ids)
                yield {"prompt": list(ids), "max_tokens": 1, "temperature": 0.0, "logprobs": 1, "echo": True}

        def take(number: int, answer: Mapping[str, Any]) -> None:
            on_logprob(number, likelihood_of(answer, lengths.pop(number), 1)[0])

        self._server.map("/v1/completions", bodies(), take)


@contextmanager
def open_generator(engine: Engine | Endpoint | None, model_path: str | None) -> Iterator[Generator | TextGenerator]:
    """A generator of an exported model, for the block; our JAX model in this process if `engine` is None.

    Of an endpoint's model the export is for its tokenizer; without one (None), the generator takes texts. What is read
    of the export is copied to this machine. Raises ModelError, EngineError.
    """
    if model_path is None:
        if not isinstance(engine, Endpoint):
            raise EngineError(f"The engine is {engine!r}, expected an Endpoint where no export is given. Give one.")
        with EndpointClient(engine) as client:
            yield TextGenerator(client)
        return
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        copy_to_local(model_path, folder, but=() if reads_weights(engine) else WEIGHTS)
        if engine is None:
            yield JaxGenerator(*load_model(folder))
            return
        servers = EndpointClient(engine) if isinstance(engine, Endpoint) else ModelServers(engine, folder, model_path)
        with servers as server:
            yield ServedGenerator(server, ModelTokenizer(folder), window=engine.max_length or window_of(folder))


def body_of(prompt: Prompt) -> dict[str, Any]:
    """The request of OpenAI's completions for a prompt."""
    return {
        "prompt": list(prompt.ids),
        "max_tokens": prompt.max_tokens,
        "temperature": prompt.temperature,
        "seed": prompt.seed,
        "stop": list(prompt.stops),
        "stop_token_ids": list(prompt.stop_ids),
        **dict(prompt.sampling),
    }


def text_body_of(prompt: TextPrompt) -> dict[str, Any]:
    """The request of OpenAI's completions for a text, or of its chat completions for messages."""
    text = {"prompt": prompt.text} if isinstance(prompt.text, str) else {"messages": list(prompt.text)}
    seed = {"seed": prompt.seed} if prompt.temperature else {}
    settings = {"max_tokens": prompt.max_tokens, "temperature": prompt.temperature, "stop": list(prompt.stops)}
    return {**text, **settings, **seed, **dict(prompt.sampling)}


def window_of(folder: str) -> int:
    """The window of an exported model, in tokens. Raises ModelError for a config without it."""
    config = os.path.join(folder, "config.json")
    window = json.loads(Path(config).read_text()).get("max_position_embeddings")
    if not isinstance(window, int):
        raise ModelError(f"{config!r} has no 'max_position_embeddings'. Pass max_length=… to the Engine or Endpoint.")
    return window
