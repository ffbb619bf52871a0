"""A Levanter model as lm-eval sees a model: `JaxLM(*load_model(folder))`. No torch, no network.

Tokens go through the model in batches of one size and of a few lengths (powers of two), so that XLA compiles a few
programs; the longest go first. The batch is spread over the local accelerators, each of which holds the model.
lm-eval is imported at the top, because JaxLM is a class of its: import this module where it is used.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import normalize_gen_kwargs
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

SHORTEST_BUCKET = 32
DEFAULT_GENERATED_TOKENS = 256
"""lm-eval's own default, if half a window holds as many."""
LEVANTER_NAMES = {"qwen2": "qwen"}
"""Architectures that Levanter knows by another name than Hugging Face."""

log = logging.getLogger(__name__)


class ModelError(ValueError):
    """A model folder, or a request, that cannot be served: one sentence."""


def load_model(folder: str) -> tuple[Any, Any]:
    """The model and the tokenizer of a local Hugging Face export. Raises ModelError if a file is missing."""
    from levanter.models.lm_model import LmConfig
    from levanter.tokenizers import load_tokenizer
    from levanter.utils.jax_utils import local_cpu_mesh

    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if not (Path(folder) / name).exists():
            raise ModelError(f"There is no {name!r} in {folder!r}. Expected the folder of a Hugging Face export.")
    kind = json.loads((Path(folder) / "config.json").read_text())["model_type"]
    known = LmConfig.get_known_choices()
    if LEVANTER_NAMES.get(kind, kind) not in known:
        raise ModelError(f"{folder!r} holds a model of type {kind!r}, expected one that Levanter has: {sorted(known)}.")
    config_class = known[LEVANTER_NAMES.get(kind, kind)]
    tokenizer = load_tokenizer(folder)
    config = config_class(reference_checkpoint=folder, tokenizer=folder)
    with local_cpu_mesh():
        model = config.hf_checkpoint_converter().replaced(tokenizer=tokenizer).load_pretrained(config_class, ref=folder)
    return model, tokenizer


class JaxLM(TemplateLM):
    """Log-likelihoods and greedy generation of a Levanter model.

    `batch_size` rows at a time (rounded up to the number of local devices); `max_length` tokens of context, the
    model's own if None. A text longer than that loses its beginning.
    """

    def __init__(self, model: Any, tokenizer: Any, *, batch_size: int = 32, max_length: int | None = None) -> None:
        super().__init__()
        import haliax as hax
        import jax

        devices = jax.local_devices()
        self._sharding = _batch_sharding(devices)
        self._model = _replicate(model, devices)
        self._tokenizer = tokenizer
        self._rows = -(-batch_size // len(devices)) * len(devices)
        self._max_length = max_length or model.Pos.size
        if self._max_length > model.Pos.size:
            raise ModelError(f"max_length is {max_length}, but the model's window is {model.Pos.size}. Ask for less.")
        self._score = hax.named_jit(_score)
        self._predict = hax.named_jit(_predict)

    @property
    def eot_token_id(self) -> int:
        return self._tokenizer.eos_token_id

    @property
    def prefix_token_id(self) -> int:
        """What stands before a text without context: training documents begin with it."""
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
        """Token ids, with one BOS in front unless `add_special_tokens` is False or the model has none."""
        ids = list(self._tokenizer.encode(string, add_special_tokens=False))
        bos = self._tokenizer.bos_token_id
        return ids if add_special_tokens is False or bos is None or ids[:1] == [bos] else [bos, *ids]

    def tok_decode(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return super().loglikelihood(requests, disable_tqdm=True)  # progress is logged, bars fill the log files

    def _loglikelihood_tokens(
        self, requests: list[tuple[Any, list[int], list[int]]], disable_tqdm: bool = False, **kwargs: Any
    ) -> list[tuple[float, bool]]:
        """For each (key, context, continuation): the log-likelihood in nats, and whether greedy decoding says it."""
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
        """Context and continuation, the oldest tokens cut: all but the last are input, all but the first targets."""
        if len(continuation) > self._max_length:
            raise ModelError(
                f"A continuation has {len(continuation)} tokens and the window {self._max_length}, so it cannot be "
                "scored whole. Shorten it, or score the text with a loglikelihood_rolling task."
            )
        return [*context, *continuation][-(self._max_length + 1) :]

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Log-likelihood of each whole text in nats, in windows side by side: every token is predicted once."""
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
        """Greedy continuations, each cut at its first stop text.

        Every token reads the whole text again (no cache of keys and values): right for short answers of small models.
        """
        asked = [self._generation(*request.args) for request in requests]
        texts = [""] * len(requests)
        for batch, *_ in self._batches([(len(context) + count, count) for context, _, count in asked], "generations"):
            for i, text in zip(batch, self._generate([asked[i] for i in batch]), strict=True):
                texts[i] = text
                self.cache_hook.add_partial("generate_until", requests[i].args, text)
        return texts

    def _generation(self, context: str, settings: dict[str, Any]) -> tuple[list[int], list[str], int]:
        """Token ids of the context as far as they fit, the stop texts, and how many tokens to generate at most."""
        asked: dict[str, Any] = dict(normalize_gen_kwargs(settings, self.max_gen_toks))
        if asked["do_sample"] and asked["temperature"] > 0:
            raise ModelError(f"A task generates with {settings!r}, but JaxLM decodes greedily. Set do_sample: false.")
        count = asked["max_gen_toks"]
        if not 0 < count < self._max_length:
            raise ModelError(
                f"A task asks for {count} new tokens, but the window is {self._max_length}. Ask for fewer."
            )
        stops = [stop for stop in asked["until"] if stop]
        return self.tok_encode(context)[-(self._max_length - count) :], stops, count

    def _generate(self, asked: Sequence[tuple[list[int], list[str], int]]) -> list[str]:
        import numpy as np

        rows = [list(context) for context, _, _ in asked]
        texts, running = [""] * len(asked), set(range(len(asked)))
        while running:
            tokens = np.zeros((self._rows, self._bucket(max(map(len, rows)))), np.int32)
            last = np.zeros(self._rows, np.int32)
            for place, row in enumerate(rows):
                tokens[place, : len(row)], last[place] = row, len(row) - 1
            predicted = np.asarray(self._predict(self._model, *self._put(tokens, last)))
            for place in sorted(running):
                context, stops, count = asked[place]
                token = int(predicted[place])
                ended = token == self.eot_token_id
                rows[place] += [] if ended else [token]
                texts[place] = self.tok_decode(rows[place][len(context) :])
                if ended or len(rows[place]) - len(context) >= count or any(stop in texts[place] for stop in stops):
                    texts[place] = _cut(texts[place], stops)
                    running.remove(place)
        return texts

    def _batches(self, sizes: Sequence[tuple[int, int]], what: str) -> Iterator[tuple[list[int], int, int]]:
        """Indices of one batch after the other, longest first; what to pad both sizes to. Logs rate and time left."""
        order = sorted(range(len(sizes)), key=lambda i: (-self._bucket(sizes[i][0]), -sizes[i][1]))
        started = told = time.monotonic()
        for begin in range(0, len(order), self._rows):
            batch = order[begin : begin + self._rows]
            longest = [self._bucket(max(sizes[i][which] for i in batch)) for which in (0, 1)]
            yield batch, longest[0], min(longest)
            done, now = begin + len(batch), time.monotonic()
            if now - told > 5 or done == len(order):
                told, rate = now, done / max(now - started, 1e-9)
                left_s = (len(order) - done) / rate
                log.info("%s: %d of %d, %.1f a second, %.0f s left", what, done, len(order), rate, left_s)

    def _bucket(self, length: int) -> int:
        """The smallest length that is compiled and holds `length` tokens."""
        bucket = SHORTEST_BUCKET
        while bucket < length:
            bucket *= 2
        return min(bucket, self._max_length)

    def _put(self, *arrays: Any) -> list[Any]:
        import jax

        return [jax.device_put(array, self._sharding) for array in arrays]


def _score(model: Any, tokens: Any, positions: Any, targets: Any) -> tuple[Any, Any]:
    """(batch, position) ids; positions and the ids that follow them, both (batch, scored) -> for each of these the
    log-probability, and whether it is the likeliest."""
    import jax
    import jax.numpy as jnp

    logits = _logits(model, tokens, positions)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return picked - jax.nn.logsumexp(logits, axis=-1), picked == logits.max(axis=-1)


def _predict(model: Any, tokens: Any, last: Any) -> Any:
    """(batch, position) ids and each row's last position -> the likeliest next id of each row."""
    return _logits(model, tokens, last[:, None])[:, 0].argmax(axis=-1)


def _logits(model: Any, tokens: Any, positions: Any) -> Any:
    """(batch, scored, vocabulary) in float32, at these positions alone: they are two thirds of a small model's work.

    Padding stands on the right, where the causal mask hides it.
    """
    import haliax as hax
    import jax.numpy as jnp
    from levanter.layers.attention import AttentionMask

    batch, position = hax.Axis("batch", tokens.shape[0]), model.Pos.resize(tokens.shape[1])
    found = model.activations(hax.named(tokens, (batch, position)), attn_mask=AttentionMask.causal())
    hidden = found[0] if isinstance(found, tuple) else found  # mixtures of experts add their auxiliary loss
    rows = hidden.rearrange((batch, position, model.Embed)).array
    picked = jnp.take_along_axis(rows, positions[..., None], axis=1)
    scored = hax.named(picked, (batch, hax.Axis("scored", positions.shape[1]), model.Embed))
    logits = hax.dot(scored, model.get_lm_head(), axis=model.Embed)
    return logits.rearrange((*scored.axes[:2], model.Vocab)).array.astype(jnp.float32)


def _batch_sharding(devices: Sequence[Any]) -> Any:
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    return NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec("data"))


def _replicate(model: Any, devices: Sequence[Any]) -> Any:
    """The model's arrays on every device."""
    import equinox as eqx
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    everywhere = NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec())
    arrays, rest = eqx.partition(model, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, everywhere), rest)


def _cut(text: str, stops: Sequence[str]) -> str:
    for stop in stops:
        text = text.split(stop)[0]
    return text
