"""The sequences of one step of a training, by the functions that the training draws them with.

In:  the config of a training, and a step.   Out: the tokens of its sequences, and the place of each in its cache.
Nothing is written but the copy of the tokenizer, in a temporary folder that the caller gives.

The order is a function of the config: the seed gives the key of the shuffle and of the mixture, and the step gives the
positions, as `levanter.main.train_lm` and the loader of its trainer compute them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from levanter.data.text.datasets import TokenSeqDataset
from levanter.utils.jax_utils import local_cpu_mesh

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.formats import chat_format
from marin_assets.stages.train.inputs.mixture_inputs import caches_in
from marin_assets.stages.train.inputs.token_inputs import set_chat_template, stage_tokenizer
from marin_assets.stages.train.levanter_run.config import build_config


@dataclass(frozen=True, kw_only=True)
class DrawnSequence:
    """A sequence of a batch."""

    tokens: list[int]
    learnt: list[bool]
    """Whether the loss of the token after each counts."""
    cache: str
    """Path of the split that it is from; empty for chats, of which several are packed into one sequence."""
    first_token: int
    """Number of its first token, counted over all rows of the cache."""


@dataclass(frozen=True, kw_only=True)
class DrawnBatch:
    """Some sequences of the batch of a step."""

    size: int
    """Sequences of the whole batch."""
    sequences: list[DrawnSequence]


def draw_batch(config: TrainLmConfig, *, family: str, step: int, first: int, count: int, folder: str) -> DrawnBatch:
    """The sequences from `first` on, at most `count`, of the batch of `step`, counted from 0 as in metrics.jsonl.

    `config` has its snapshots expanded; `family` is that of the model's shape. Raises TrainError and InputError.
    """
    tokenizer = stage_tokenizer(config.tokenizer_path, f"{folder}/tokenizer", family)
    chats = chat_format(caches_in(config))
    if chats is not None:
        set_chat_template(tokenizer, chats.template)
    built = build_config(replace(config, compilation_cache_dir=None), tokenizer=tokenizer, log_dir=folder)
    built.trainer._initialize_jax_config()  # the numbers of jax depend on it
    schedule = built.trainer.batch_schedule
    size, offset = schedule.batch_size_at_step(step), schedule.global_data_offset_by_step(step)
    length = built.train_seq_len or built.model.max_seq_len
    with local_cpu_mesh(), recorded_places() as places:
        dataset = built.data.train_set(built.model.max_Pos.resize(length), schedule, key=_key_of_the_data(built))
        sequences = []
        for number in range(first, min(first + count, size)):
            places.clear()
            example = _sequence(dataset, offset + number)
            if example is None:
                raise TrainError(f"The data end before sequence {offset + number:,}, which step {step:,} reads.")
            cache, first_token = places[0] if len(places) == 1 else ("", 0)
            sequences.append(
                DrawnSequence(
                    tokens=np.asarray(example.tokens.array).tolist(),
                    learnt=(np.asarray(example.loss_weight.array) > 0).tolist(),
                    cache=cache,
                    first_token=first_token,
                )
            )
    return DrawnBatch(size=size, sequences=sequences)


def _key_of_the_data(built: Any) -> Any:
    """The key of the order, as `levanter.main.train_lm` makes it."""
    if built.data_seed is not None:
        return jax.random.PRNGKey(built.data_seed)
    return jax.random.split(jax.random.PRNGKey(built.trainer.seed), 4)[0]


def _sequence(dataset: Any, index: int) -> Any:
    """The example at a position; None behind the last one of data that end."""

    async def read() -> Any:
        if dataset.is_finite() and index >= await dataset.async_len():
            return None
        return (await dataset.get_batch([index]))[0]

    return asyncio.run(read())


@contextmanager
def recorded_places() -> Iterator[list[tuple[str, int]]]:
    """Yield the cache and the first token of each sequence that is read from a cache of documents meanwhile."""
    original, places = TokenSeqDataset.get_batch, list[tuple[str, int]]()

    async def recorded(self: Any, indices: Sequence[int]) -> Any:
        places.extend((str(self.doc_cache.cache_dir), int(index) * self.seq_len) for index in indices)
        return await original(self, indices)

    TokenSeqDataset.get_batch = recorded  # type: ignore[method-assign]
    try:
        yield places
    finally:
        TokenSeqDataset.get_batch = original  # type: ignore[method-assign]
