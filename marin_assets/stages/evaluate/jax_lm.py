"""A Levanter model with lm-eval's interface: `JaxLM(*load_model(folder))`.

Batches have one size and a few lengths (powers of two), so XLA compiles few programs; the longest texts go first. Each
batch is sharded over the local accelerators, and each accelerator holds the whole model. JaxLM is a subclass of
lm-eval's, so this module imports lm-eval at the top: import this module inside functions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import normalize_gen_kwargs
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from marin_assets.stages.evaluate.jax_model import ModelError, batch_sharding, logits_at, mesh_for, replicate

SHORTEST_BUCKET = 32
DEFAULT_GENERATED_TOKENS = 256
"""lm-eval's default; at most half a window is generated."""

log = logging.getLogger(__name__)


class JaxLM(TemplateLM):
    """Log-likelihoods and greedy generation of a Levanter model.

    `batch_size` is the number of rows of a batch, rounded up to a multiple of the local devices. `max_length` is the
    context in tokens, the model's own if None. Longer texts are truncated on the left.
    """

    def __init__(self, model: Any, tokenizer: Any, *, batch_size: int = 32, max_length: int | None = None) -> None:
        super().__init__()
        import haliax as hax
        import jax

        devices = jax.local_devices()
        self._sharding = batch_sharding(devices)
        self._model = replicate(model, devices)
        self._tokenizer = tokenizer
        self._rows = -(-batch_size // len(devices)) * len(devices)
        self._max_length = max_length or model.Pos.size
        if self._max_length > model.Pos.size:
            raise ModelError(f"max_length is {max_length}, expected at most the model's window of {model.Pos.size}.")
        self._score = hax.named_jit(_score)
        self._predict = hax.named_jit(_predict)

    @property
    def eot_token_id(self) -> int:
        return self._tokenizer.eos_token_id

    @property
    def prefix_token_id(self) -> int:
        """The token before a text without context: BOS, as in training documents, or EOS if the model has no BOS."""
        bos = self._tokenizer.bos_token_id
        return self.eot_token_id if bos is None else bos

    @property
    def tokenizer_name(self) -> str:
        return self._tokenizer.name_or_path

    @property
    def max_length(self) -> int:
        return self._max_length

    @property
    def max_gen_toks(self) -> int:
        return min(DEFAULT_GENERATED_TOKENS, self._max_length // 2)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """Return token ids, with one BOS in front unless `add_special_tokens` is False or the model has no BOS."""
        ids = list(self._tokenizer.encode(string, add_special_tokens=False))
        bos = self._tokenizer.bos_token_id
        return ids if add_special_tokens is False or bos is None or ids[:1] == [bos] else [bos, *ids]

    def tok_decode(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return super().loglikelihood(requests, disable_tqdm=True)  # `_batches` logs the progress

    def _loglikelihood_tokens(
        self, requests: list[tuple[Any, list[int], list[int]]], disable_tqdm: bool = False, **kwargs: Any
    ) -> list[tuple[float, bool]]:
        """Return, for each (key, context, continuation), its log-likelihood in nats and whether it is greedy."""
        import numpy as np

        rows = [self._fit(context, continuation) for _, context, continuation in requests]
        answers: list[tuple[float, bool]] = [(0.0, True)] * len(rows)
        sizes = [(len(row) - 1, len(request[2])) for row, request in zip(rows, requests, strict=True)]
        for batch, length, scored in self._batches(sizes, "log-likelihoods"):
            tokens = np.zeros((self._rows, length), np.int32)
            positions, targets = np.zeros((2, self._rows, scored), np.int32)
            for place, i in enumerate(batch):
                inputs, count = len(rows[i]) - 1, len(requests[i][2])
                tokens[place, :inputs] = rows[i][:-1]
                positions[place, :count] = range(inputs - count, inputs)
                targets[place, :count] = rows[i][len(rows[i]) - count :]
            with mesh_for(self._model):
                arrays = self._score(self._model, *self._put(tokens, positions, targets))
            logprobs, greedy = (np.asarray(array) for array in arrays)
            for place, i in enumerate(batch):
                key, count = requests[i][0], len(requests[i][2])
                total = float(logprobs[place, :count].astype(np.float64).sum())
                answers[i] = (total, bool(greedy[place, :count].all()))
                if key is not None:
                    self.cache_hook.add_partial("loglikelihood", key, answers[i])
        return answers

    def _fit(self, context: list[int], continuation: list[int]) -> list[int]:
        """Concatenate context and continuation, truncated on the left to `max_length` inputs and the last target."""
        if len(continuation) > self._max_length:
            raise ModelError(
                f"A continuation has {len(continuation)} tokens, expected at most the window of {self._max_length}. "
                "Shorten it, or score the text with a loglikelihood_rolling task."
            )
        return [*context, *continuation][-(self._max_length + 1) :]

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Return the log-likelihood of each whole text in nats, in adjacent windows: each token is predicted once."""
        windows: list[tuple[Any, list[int], list[int]]] = []
        owners: list[int] = []
        for owner, request in enumerate(requests):
            ids = self.tok_encode(request.args[0], add_special_tokens=False)
            for window in get_rolling_token_windows(ids, self.prefix_token_id, self._max_length, context_len=1):
                windows.append((None, *make_disjoint_window(window)))
                owners.append(owner)
        totals = [0.0] * len(requests)
        for owner, (logprob, _) in zip(owners, self._loglikelihood_tokens(windows), strict=True):
            totals[owner] += logprob
        for request, total in zip(requests, totals, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Return greedy continuations, each truncated at its first stop text.

        Each new token is computed from the whole text (no cache of keys and values), which suits short answers of small
        models.
        """
        prompts = [self._prompt(*request.args) for request in requests]
        texts = [""] * len(requests)
        for batch, *_ in self._batches([(len(context) + count, count) for context, _, count in prompts], "generations"):
            for i, text in zip(batch, self._generate([prompts[i] for i in batch]), strict=True):
                texts[i] = text
                self.cache_hook.add_partial("generate_until", requests[i].args, text)
        return texts

    def _prompt(self, context: str, settings: dict[str, Any]) -> tuple[list[int], list[str], int]:
        """Return the context's token ids, truncated to fit, the stop texts, and the most tokens to generate."""
        normalized: dict[str, Any] = dict(normalize_gen_kwargs(settings, self.max_gen_toks))
        if normalized["do_sample"] and normalized["temperature"] > 0:
            raise ModelError(f"A task generates with {settings!r}, but JaxLM decodes greedily. Set do_sample: false.")
        count = normalized["max_gen_toks"]
        if not 0 < count < self._max_length:
            raise ModelError(
                f"A task generates {count} tokens, expected fewer than the window of {self._max_length}. "
                "Lower max_gen_toks."
            )
        stops = [stop for stop in normalized["until"] if stop]
        return self.tok_encode(context)[-(self._max_length - count) :], stops, count

    def _generate(self, prompts: Sequence[tuple[list[int], list[str], int]]) -> list[str]:
        import numpy as np

        rows = [list(context) for context, _, _ in prompts]
        texts, running = [""] * len(prompts), set(range(len(prompts)))
        while running:
            tokens = np.zeros((self._rows, self._bucket(max(map(len, rows)))), np.int32)
            last = np.zeros(self._rows, np.int32)
            for place, row in enumerate(rows):
                tokens[place, : len(row)], last[place] = row, len(row) - 1
            with mesh_for(self._model):
                predicted = np.asarray(self._predict(self._model, *self._put(tokens, last)))
            for place in sorted(running):
                context, stops, count = prompts[place]
                token = int(predicted[place])
                ended = token == self.eot_token_id
                rows[place] += [] if ended else [token]
                texts[place] = self.tok_decode(rows[place][len(context) :])
                if ended or len(rows[place]) - len(context) >= count or any(stop in texts[place] for stop in stops):
                    texts[place] = _truncate(texts[place], stops)
                    running.remove(place)
        return texts

    def _batches(self, sizes: Sequence[tuple[int, int]], what: str) -> Iterator[tuple[list[int], int, int]]:
        """Yield (indices, the two sizes to pad to) of each batch, longest first. Log the rate and the time left."""
        order = sorted(range(len(sizes)), key=lambda i: (-self._bucket(sizes[i][0]), -sizes[i][1]))
        started = logged_at = time.monotonic()
        for begin in range(0, len(order), self._rows):
            batch = order[begin : begin + self._rows]
            longest = [self._bucket(max(sizes[i][which] for i in batch)) for which in (0, 1)]
            yield batch, longest[0], min(longest)
            done, now = begin + len(batch), time.monotonic()
            if now - logged_at > 5 or done == len(order):
                logged_at, rate = now, done / max(now - started, 1e-9)
                left_s = (len(order) - done) / rate
                log.info("%s: %d of %d, %.1f a second, %.0f s left", what, done, len(order), rate, left_s)

    def _bucket(self, length: int) -> int:
        """Return the smallest compiled length of at least `length` tokens."""
        bucket = SHORTEST_BUCKET
        while bucket < length:
            bucket *= 2
        return min(bucket, self._max_length)

    def _put(self, *arrays: Any) -> list[Any]:
        import jax

        return [jax.device_put(array, self._sharding) for array in arrays]


def _score(model: Any, tokens: Any, positions: Any, targets: Any) -> tuple[Any, Any]:
    """Score the target ids: for each, its log-probability and whether it is the likeliest, both (batch, scored).

    `tokens` are ids (batch, position). `positions` and `targets` are (batch, scored): a position, and the id after it.
    """
    import jax
    import jax.numpy as jnp

    logits = logits_at(model, tokens, positions)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return picked - jax.nn.logsumexp(logits, axis=-1), picked == logits.max(axis=-1)


def _predict(model: Any, tokens: Any, last: Any) -> Any:
    """Return the likeliest next id of each row, (batch,), given ids (batch, position) and each row's last position."""
    return logits_at(model, tokens, last[:, None])[:, 0].argmax(axis=-1)


def _truncate(text: str, stops: Sequence[str]) -> str:
    for stop in stops:
        text = text.split(stop)[0]
    return text
