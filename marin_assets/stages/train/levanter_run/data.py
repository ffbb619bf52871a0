"""The data of a training as Levanter's: components by weight, or a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
from levanter.data import AsyncDataset
from levanter.data.text import (
    BlockShuffleConfig,
    ChatLmDatasetFormat,
    ConcatDatasetComponent,
    DatasetComponent,
    LmDataConfig,
)

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.formats import CHAT, ChatSpec, format_of
from marin_assets.stages.train.inputs.mixture_inputs import has_validation, subset_length
from marin_assets.stages.train.inputs.token_inputs import count_tokens
from marin_assets.stages.train.levanter_run.sequences import SequenceData
from marin_assets.stages.train.specs.mixture import BlockShuffle, Mixture, Subset, phases_of, sequences_before
from marin_resources.storage.paths import join


def build_data(config: TrainLmConfig, *, tokenizer: str) -> LmDataConfig:
    """Return Levanter's config of the data. Without weights a component counts by its tokens."""
    if config.mixture is not None:
        return _mixture(config, config.mixture, tokenizer)
    return SequenceData(
        tokenizer=tokenizer,
        cache_dir=None,
        auto_build_caches=False,
        shuffle=True,
        permutation_type="feistel",
        components={name: _component_of(path, config.chat) for name, path in config.components.items()},
        train_weights=config.train_weights
        or {name: float(count_tokens(path, "train")) for name, path in config.components.items()},
    )


@dataclass(frozen=True)
class MixtureData(SequenceData):
    """Levanter's mixture, with subsets of its members, and long enough for the training."""

    subsets: Mapping[str, Subset] | None = None
    sequences_needed: int = 0

    def build_token_datasets(self, caches: Any, Pos: Any, *, split: str) -> dict[str, AsyncDataset[Any]]:
        """Before members are shuffled: so a subset does not depend on the seed of the training."""
        datasets = super().build_token_datasets(caches, Pos, split=split)
        if split == "train":
            datasets |= {name: _cut(datasets[name], part, Pos.size) for name, part in (self.subsets or {}).items()}
        return datasets

    def train_set(self, Pos: Any, batch_schedule: Any, *, key: Any) -> AsyncDataset[Any]:
        dataset = super().train_set(Pos, batch_schedule, key=key)
        if dataset.is_finite() and (length := len(dataset.as_sync_dataset())) < self.sequences_needed:
            raise InputError(
                f"The mixture ends after {length} sequences by stop_strategy={self.stop_strategy!r}, and the training "
                f"takes {self.sequences_needed}. Train for fewer steps, or use 'restart'."
            )
        return dataset


def _mixture(config: TrainLmConfig, mixture: Mixture, tokenizer: str) -> MixtureData:
    shuffle = mixture.shuffle
    return MixtureData(
        tokenizer=tokenizer,
        cache_dir=None,
        auto_build_caches=False,
        shuffle=BlockShuffleConfig(shuffle.io_block_size, shuffle.window_blocks)
        if isinstance(shuffle, BlockShuffle)
        else shuffle,
        permutation_type=mixture.permutation_type,
        components={name: _component(member, config.chat) for name, member in mixture.components.items()},
        train_weights=[(phase.first_step, phase.weights) for phase in phases_of(mixture.weights)],
        stop_strategy=mixture.stop_strategy,
        mixture_block_size=mixture.block_size,
        experiment_budget=mixture.experiment_budget_tokens,
        target_budget=mixture.target_budget_tokens,
        subsets=mixture.subsets,
        sequences_needed=sequences_before(config.num_train_steps, config.train_batch_size),
    )


def _component(member: Any, chat: ChatSpec | None) -> DatasetComponent | ConcatDatasetComponent:
    if set(member) == {""}:
        return _cache(member[""], chat)
    return ConcatDatasetComponent(children={key: _cache(path, chat) for key, path in member.items()})


def _cache(path: str, chat: ChatSpec | None) -> DatasetComponent:
    """Without a validation side, Levanter is given the train side alone: else it fails for lack of the other."""
    if has_validation(path):
        return _component_of(path, chat)
    return replace(_component_of(path, chat), cache_dir=join(path, "train"), flat_cache=True)


def _cut(dataset: AsyncDataset[Any], part: Subset, sequence_length: int) -> AsyncDataset[Any]:
    if part.seed is not None:
        dataset = dataset.shuffle(jax.random.PRNGKey(part.seed), perm_type="feistel")
    return dataset.slice_dataset(end_index=subset_length(part.tokens, part.sequences, sequence_length))


def _component_of(path: str, chat: ChatSpec | None) -> DatasetComponent:
    """Return the component of the cache at `path`; `chat` has the settings for chats."""
    if chat is None or format_of(path) != CHAT:
        return DatasetComponent(cache_dir=path)
    # the template is that of the tokenizer; a number of 1 packs none, True would be Levanter's 64
    return DatasetComponent(cache_dir=path, format=ChatLmDatasetFormat(pack=chat.chats_per_sequence))
