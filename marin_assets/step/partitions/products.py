"""The product of two sets of partitions: a key for each pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from marin_assets.step.partitions.sets import DynamicPartitions, Partitions, StaticPartitions
from marin_assets.step.partitions.windows import TimePartitions
from marin_assets.step.values import ConfigError

SEPARATOR = "|"
"""Dagster's, between the keys of two dimensions."""


@dataclass(frozen=True)
class ProductPartitions(Partitions):
    dimensions: Mapping[str, Partitions]
    """Two sets by name, in the order of the names."""

    @property
    def label(self) -> str:
        return "_".join(self.dimensions)

    @property
    def mark(self) -> dict[str, Any]:
        return {name: dimension.mark for name, dimension in self.dimensions.items()}

    @property
    def fixed_keys(self) -> tuple[str, ...] | None:
        first, second = (dimension.fixed_keys for dimension in self.dimensions.values())
        if first is None or second is None:
            return None
        return tuple(f"{key}{SEPARATOR}{other_key}" for key in first for other_key in second)

    def keys_now(self, now: datetime, grown: Callable[[str], Sequence[str]]) -> Sequence[str]:
        first, second = (dimension.keys_now(now, grown) for dimension in self.dimensions.values())
        return [f"{key}{SEPARATOR}{other_key}" for key in first for other_key in second]

    def require(self, key: str) -> None:
        for name, part in self.split(key).items():
            self.dimensions[name].require(part)

    def split(self, key: str) -> dict[str, str]:
        """The key of each dimension. Raises ConfigError."""
        parts = key.split(SEPARATOR) if isinstance(key, str) else []
        if len(parts) != len(self.dimensions):
            raise ConfigError(
                f"There is no partition {key!r}. Expected the keys of {' and '.join(self.dimensions)}, joined with "
                f"{SEPARATOR!r}."
            )
        return dict(zip(self.dimensions, parts, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self.dimensions.items()))

    def __repr__(self) -> str:
        return f"product({', '.join(f'{name}={dimension!r}' for name, dimension in self.dimensions.items())})"


def product(**dimensions: Partitions) -> ProductPartitions:
    """A key for each pair of keys of two sets, by the names of the sets. Dagster has products of two."""
    if len(dimensions) != 2:
        raise ConfigError(
            f"product() has {len(dimensions)} dimensions, expected two, such as "
            "product(day=daily('2026-01-01'), lang=static('en', 'de')). Put more of them into the keys of one set."
        )
    for name, dimension in dimensions.items():
        if not isinstance(dimension, StaticPartitions | DynamicPartitions | TimePartitions):
            raise ConfigError(
                f"product() has {name}={dimension!r}, expected static(), dynamic(), hourly(), daily(), weekly() or "
                "monthly()."
            )
        if odd := [key for key in dimension.fixed_keys or () if SEPARATOR in key]:
            raise ConfigError(
                f"product() has the key {odd[0]!r} in {name}, and joins keys with {SEPARATOR!r}. Rename it."
            )
    return ProductPartitions(dict(sorted(dimensions.items())))
