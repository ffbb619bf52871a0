"""Continue many texts at once with a Levanter model, each as long as it wants.

A text that ends makes room for the next, so the rows of a batch stay full (continuous batching, as in Orca: Yu et al.,
OSDI 2022). Each new token is computed from the whole text, without a cache of keys and values: that suits small models
and short texts. Rows and lengths are padded to a few sizes, so XLA compiles few programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from marin_assets.inference.completion_fields import SERVED
from marin_assets.inference.jax_model import (
    ModelError,
    batch_sharding,
    bound,
    logits_at,
    mesh_for,
    padded_length,
    rebound,
    replicate,
    require_known,
)
from marin_assets.inference.tokenizer import ModelTokenizer

FEW_ROWS = (1, 8)
"""Padded numbers of rows of a small batch."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A text to continue."""

    ids: tuple[int, ...]
    max_tokens: int
    stops: tuple[str, ...] = ()
    """Texts that end the answer, and are not in it."""
    stop_ids: tuple[int, ...] = ()
    """Tokens that end the answer, in addition to those at which the model stops."""
    temperature: float = 0.0
    """Divides the logits; at 0 the likeliest token is taken."""
    seed: int = 0
    sampling: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    """Further settings of the draw, by their names in OpenAI's API: ("top_p", 0.95)."""
    keeps_drawn_logprobs: bool = field(default=False, repr=False)
    """Whether its completion has `drawn_logprobs`."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A continued text."""

    text: str
    ids: tuple[int, ...]
    """Tokens of the text, without the one that ended it."""
    logprobs: tuple[float, ...]
    """Log-probabilities of these tokens, in nats, at temperature 1."""
    finish: Literal["stop", "length"]
    tokens: int
    """Number of generated tokens; a server may report nothing else about them."""
    prompt_tokens: int = 0
    """Number of the prompt's tokens as a server counts them, of a prompt that was sent as text."""
    end_token: int | None = None
    """The token at which the model ended it; None if a text or the length did."""
    drawn_logprobs: tuple[float, ...] = ()
    """Log-probabilities at the prompt's temperature, of the tokens and then of `end_token`, if the prompt keeps
    them and is not of temperature 0."""


@dataclass
class _Row:
    number: int
    prompt: Prompt
    random: Any
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    drawn_logprobs: list[float] = field(default_factory=list)
    end_token: int | None = None


class Decoder:
    """A batch of texts under way: `admit` one while it has room, and take those that have ended from `step`."""

    def __init__(self, model: Any, tokenizer: ModelTokenizer, *, rows: int = 32, max_length: int | None = None) -> None:
        """`max_length`: tokens of prompt and answer together; the model's own window if None."""
        import jax

        devices = jax.local_devices()
        self._sharding = batch_sharding(devices)
        self._model = replicate(model, devices)
        self.tokenizer = tokenizer
        self.max_length = min(max_length or model.Pos.size, model.Pos.size)
        sizes = {*(size for size in FEW_ROWS if size < rows), rows}
        self._sizes = sorted({-(-size // len(devices)) * len(devices) for size in sizes})
        self._rows: list[_Row] = []
        self._next, self._next_logits = bound(_next, self._model), bound(_next_logits, self._model)

    def replace_weights(self, model: Any) -> None:
        """Take the weights of another model of the same shape, while no text is under way. Nothing is compiled."""
        import jax

        assert self.is_idle
        self._model = replicate(model, jax.local_devices())
        self._next, self._next_logits = (rebound(function, self._model) for function in (self._next, self._next_logits))

    @property
    def has_room(self) -> bool:
        return len(self._rows) < self._sizes[-1]

    @property
    def is_idle(self) -> bool:
        return not self._rows

    def check(self, prompt: Prompt) -> None:
        """Raise ModelError for a prompt that does not fit, or settings without a meaning."""
        if not prompt.ids:
            raise ModelError("A prompt has no tokens, expected at least one, such as the beginning of a text.")
        require_known(prompt.ids, self._model)
        if prompt.max_tokens < 1 or not 0 <= prompt.temperature < math.inf or prompt.seed < 0:
            raise ModelError(
                f"A prompt has max_tokens={prompt.max_tokens}, temperature={prompt.temperature} and "
                f"seed={prompt.seed}, expected at least 1, a number from 0 on, and at least 0."
            )
        if others := dict(prompt.sampling).keys() - SERVED:
            raise ModelError(f"A prompt has {sorted(others)} as settings of the draw, expected some of {SERVED}.")
        if "" in prompt.stops:
            raise ModelError("A prompt has an empty stop text, expected texts that can end an answer. Leave it out.")
        if len(prompt.ids) + prompt.max_tokens > self.max_length:
            raise ModelError(
                f"A prompt of {len(prompt.ids)} tokens and {prompt.max_tokens} to generate do not fit in the window of "
                f"{self.max_length}. Shorten it, or lower max_tokens."
            )

    def admit(self, number: int, prompt: Prompt) -> None:
        """Begin a text, under a number of the caller's. Raises ModelError as `check`."""
        import numpy as np

        self.check(prompt)
        assert self.has_room
        self._rows.append(_Row(number, prompt, np.random.default_rng(prompt.seed)))

    def step(self) -> list[tuple[int, Completion]]:
        """Compute one token of each text under way. Returns those that have ended, with their numbers."""
        import numpy as np

        places = next(size for size in self._sizes if size >= len(self._rows))
        longest = max(len(row.prompt.ids) + len(row.ids) for row in self._rows)
        tokens = np.zeros((places, padded_length(longest, self.max_length)), np.int32)
        last = np.zeros(places, np.int32)
        for place, row in enumerate(self._rows):
            ids = (*row.prompt.ids, *row.ids)
            tokens[place, : len(ids)], last[place] = ids, len(ids) - 1
        chosen, logprobs = self._choose(tokens, last)
        ended: list[tuple[int, Completion]] = []
        for place, row in enumerate(list(self._rows)):
            if (completion := self._advance(row, int(chosen[place]), float(logprobs[place]))) is not None:
                ended.append((row.number, completion))
                self._rows.remove(row)
        return ended

    def run(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Continue all prompts; yield each completion with the number of its prompt as it ends.

        `prompts` is read only as far as the batch has room. Raises ModelError as `check`.
        """
        numbered = enumerate(prompts)
        following = next(numbered, None)
        while following is not None or not self.is_idle:
            while following is not None and self.has_room:
                self.admit(*following)
                following = next(numbered, None)
            yield from self.step()

    def _choose(self, tokens: Any, last: Any) -> tuple[Any, Any]:
        import jax
        import numpy as np

        arrays = [jax.device_put(array, self._sharding) for array in (tokens, last)]
        with mesh_for(self._model):
            if not any(row.prompt.temperature for row in self._rows):
                chosen, logprobs = self._next(*arrays)
                return np.asarray(chosen), np.asarray(logprobs)
            logits = np.asarray(self._next_logits(*arrays)).astype(np.float64)
        ids = [
            choose(logits[i], row.prompt.temperature, row.random, **dict(row.prompt.sampling))
            for i, row in enumerate(self._rows)
        ]
        logprobs = [log_softmax(logits[i])[token] for i, token in enumerate(ids)]
        for i, row in enumerate(self._rows):
            if row.prompt.keeps_drawn_logprobs and (temperature := row.prompt.temperature):
                drawn = logprobs[i] if temperature == 1 else log_softmax(logits[i] / temperature)[ids[i]]
                row.drawn_logprobs.append(float(drawn))
        return ids, logprobs

    def _advance(self, row: _Row, token: int, logprob: float) -> Completion | None:
        """Add a token to a text. Returns it if that ends it."""
        prompt = row.prompt
        if token in self.tokenizer.stop_token_ids or token in prompt.stop_ids:
            row.end_token = token
            return self._completion(row, "stop")
        row.ids.append(token)
        row.logprobs.append(logprob)
        if prompt.stops and any(stop in self._text(row.ids) for stop in prompt.stops):
            return self._completion(row, "stop")
        return self._completion(row, "length") if len(row.ids) >= prompt.max_tokens else None

    def _completion(self, row: _Row, finish: Literal["stop", "length"]) -> Completion:
        text = self._text(row.ids)
        for stop in row.prompt.stops:
            text = text.split(stop)[0]
        ids, logprobs = tuple(row.ids), tuple(row.logprobs)
        return Completion(
            text=text,
            ids=ids,
            logprobs=logprobs,
            finish=finish,
            tokens=len(ids),
            end_token=row.end_token,
            drawn_logprobs=tuple(row.drawn_logprobs),
        )

    def _text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)


def choose(logits: Any, temperature: float, random: Any, *, top_p: float = 1.0, top_k: float = 0) -> int:
    """A token by its logits (vocabulary,): the likeliest at temperature 0, else drawn by `random`.

    It is drawn among the `top_k` likeliest, all if that is 0 or less, and of these among the fewest likeliest whose
    probabilities sum to `top_p` (nucleus sampling: Holtzman et al. 2020, arXiv 1904.09751).
    """
    import numpy as np

    if temperature == 0:
        return int(logits.argmax())
    scaled = (logits.astype(np.float64) - logits.max()) / temperature  # 0 or less, however cold
    likelihoods = np.exp(scaled)
    if top_k <= 0 and top_p >= 1:
        return int(random.choice(len(likelihoods), p=likelihoods / likelihoods.sum()))
    order = np.argsort(-likelihoods, kind="stable")
    kept = order[: int(top_k)] if top_k > 0 else order
    before = np.cumsum(likelihoods[kept]) - likelihoods[kept]
    kept = kept[before < top_p * likelihoods[kept].sum()]
    # Gumbel's noise is of each token: one that the last digits of the logits keep or leave out changes no other draw.
    return int(kept[(scaled + random.gumbel(size=len(scaled)))[kept].argmax()])


def log_softmax(logits: Any) -> Any:
    """Log-probabilities (vocabulary,), in nats."""
    import numpy as np

    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def _next_logits(model: Any, tokens: Any, last: Any) -> Any:
    """The logits after each row's last position, (rows, vocabulary) in float32."""
    return logits_at(model, tokens, last[:, None])[:, 0]


def _next(model: Any, tokens: Any, last: Any) -> tuple[Any, Any]:
    """The likeliest next id of each row and its log-probability, both (rows,)."""
    import jax

    logits = _next_logits(model, tokens, last)
    return logits.argmax(axis=-1), logits.max(axis=-1) - jax.nn.logsumexp(logits, axis=-1)
