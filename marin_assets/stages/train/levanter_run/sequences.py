"""Sequences of a training made in numpy, a whole batch at once; Levanter makes each in two jitted calls.

The arrays are equal to Levanter's. Making a sequence costs a twelfth of the time, which a training with a small model
on few cores notices: the loader takes its cores (`tests/benchmarks/mixture.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from levanter.data import AsyncDataset
from levanter.data.mixture import ConcatDataset
from levanter.data.text import CausalLmDataset, GrugLmExample, LmDataConfig, NamedLmDataset
from levanter.models.lm_model import LmExample


@dataclass(frozen=True)
class SequenceData(LmDataConfig):
    """Levanter's data, whose sequences of training are made in numpy."""

    def build_token_datasets(self, caches: Any, Pos: Any, *, split: str) -> dict[str, AsyncDataset[Any]]:
        datasets = super().build_token_datasets(caches, Pos, split=split)
        return {name: _in_numpy(dataset) for name, dataset in datasets.items()} if split == "train" else datasets

    def train_set(self, Pos: Any, batch_schedule: Any, *, key: Any) -> AsyncDataset[Any]:
        dataset = super().train_set(Pos, batch_schedule, key=key)
        return NamedSequences(dataset.dataset, Pos) if type(dataset) is NamedLmDataset else dataset


class CausalSequences(CausalLmDataset):
    """Sequences in which every next token is learned; tokens see those of their own document."""

    async def get_batch(self, indices: Sequence[int]) -> Sequence[GrugLmExample]:
        items = await self.dataset.get_batch(indices)
        if not items or "loss_weights" in items[0]:
            return [self.fn(item) for item in items]
        structure = self._structure
        tokens = np.stack([item["input_ids"] for item in items])
        weight = np.ones(tokens.shape[1], np.float32)
        weight[-1] = 0
        if not self.block_cross_document_attention or self.eos_id is None:
            return [jax.tree.unflatten(structure, [row, weight]) for row in tokens]
        begins = np.zeros(tokens.shape, bool)
        begins[:, 1:] = tokens[:, :-1] == self.eos_id
        documents = np.cumsum(begins, axis=1, dtype=np.int32)
        return [
            jax.tree.unflatten(structure, [row, weight, document, document])
            for row, document in zip(tokens, documents, strict=True)
        ]

    async def getitem_async(self, index: int) -> GrugLmExample:
        return (await self.get_batch([index]))[0]

    @cached_property
    def _structure(self) -> Any:
        """The structure of an example as Levanter builds it: with the ids of documents, or without."""
        tokens = np.zeros(self.Pos.size, np.int32)
        return jax.tree.structure(self.fn({"input_ids": tokens}))


class NamedSequences(NamedLmDataset):
    """Sequences with names of axes. The arrays are the same, in the same order."""

    async def get_batch(self, indices: Sequence[int]) -> Sequence[LmExample]:
        return [self._named(example) for example in await self.dataset.get_batch(indices)]

    async def getitem_async(self, index: int) -> LmExample:
        return self._named(await self.dataset.getitem_async(index))

    def _named(self, example: GrugLmExample) -> LmExample:
        leaves, structure = jax.tree.flatten(example)
        if structure not in self._named_structures:
            made, named = jax.tree.flatten(self.fn(example))
            self._named_structures[structure] = named if len(made) == len(leaves) else None
        named = self._named_structures[structure]
        return self.fn(example) if named is None else jax.tree.unflatten(named, leaves)

    @cached_property
    def _named_structures(self) -> dict[Any, Any]:
        """By the structure without names; None for one of whose arrays Levanter drops some: packed sequences."""
        return {}


def _in_numpy(dataset: AsyncDataset[Any]) -> AsyncDataset[Any]:
    if type(dataset) is ConcatDataset:
        return ConcatDataset({name: _in_numpy(child) for name, child in dataset.datasets.items()})
    if type(dataset) is CausalLmDataset:
        return CausalSequences(
            dataset.dataset,
            dataset.Pos,
            eos_id=dataset.eos_id,
            block_cross_document_attention=dataset.block_cross_document_attention,
        )
    return dataset
