"""Sets of partitions: which keys a step has. Each key has an output of its own, of one and the same version.

    static("en", "de")          these keys
    dynamic("deliveries")            keys that are added while the deployment runs, under this name
    daily("2026-01-01")         a key for each day from this one on; hourly, weekly, monthly: `windows.py`
    product(day=…, lang=…)      a key for each pair, "2026-01-01|en": `products.py`

A set enters the version of its step by its kind alone, so a key that is added changes no version.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from marin_assets.step.values import ConfigError
from marin_resources.types.near_names import expected_one_of
from marin_resources.types.partition_key import PartitionKeyError, require_distinct, segment_of

RANGE = "..."
"""Dagster writes a range of keys as "first...last"."""
SHOWN_KEYS = 10


class Partitions(ABC):
    """A set of keys."""

    @property
    @abstractmethod
    def mark(self) -> Any:
        """The part of a step's version that this set contributes: its kind, as JSON. It holds no key."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A word for the set, for the name of a job."""

    @abstractmethod
    def require(self, key: str) -> None:
        """Raise ConfigError for a key that this set cannot have."""

    @abstractmethod
    def keys_now(self, now: datetime, grown: Callable[[str], Sequence[str]]) -> Sequence[str]:
        """The keys of this moment, in Dagster's order. `grown` returns the keys of a dynamic set, by its name."""

    @property
    @abstractmethod
    def fixed_keys(self) -> tuple[str, ...] | None:
        """All keys, if they are in the code; None for a set that grows."""


@dataclass(frozen=True)
class StaticPartitions(Partitions):
    keys: tuple[str, ...]

    @property
    def label(self) -> str:
        return "keys"

    @property
    def mark(self) -> str:
        return "keys"

    @property
    def fixed_keys(self) -> tuple[str, ...]:
        return self.keys

    def keys_now(self, now: datetime, grown: Callable[[str], Sequence[str]]) -> Sequence[str]:
        return self.keys

    def require(self, key: str) -> None:
        if key not in self._known:
            raise ConfigError(f"There is no partition {key!r}, {expected_one_of(key, self.keys)}")

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.keys)

    def __repr__(self) -> str:
        return f"static({listed(self.keys)})"


@dataclass(frozen=True)
class DynamicPartitions(Partitions):
    name: str

    @property
    def label(self) -> str:
        return self.name

    @property
    def mark(self) -> str:
        return "keys"

    @property
    def fixed_keys(self) -> None:
        return None

    def keys_now(self, now: datetime, grown: Callable[[str], Sequence[str]]) -> Sequence[str]:
        return grown(self.name)

    def require(self, key: str) -> None:
        require_key(key)

    def __repr__(self) -> str:
        return f"dynamic({self.name!r})"


def static(*keys: str) -> StaticPartitions:
    """The set of these keys. Raises ConfigError for none, for two equal ones, and for a key that cannot be a folder."""
    if not keys:
        raise ConfigError("static() has no key. Pass the keys, such as static('en', 'de').")
    for key in keys:
        require_key(key)
    [(most, count)] = Counter(keys).most_common(1)
    if count > 1:
        raise ConfigError(f"static() has the key {most!r} {count} times. Pass each key once.")
    try:
        require_distinct(keys, "static()")
    except PartitionKeyError as error:
        raise ConfigError(str(error)) from None
    return StaticPartitions(tuple(keys))


def dynamic(name: str) -> DynamicPartitions:
    """The set of the keys that are added under this name while the deployment runs."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise ConfigError(f"dynamic({name!r}) is not a name. Expected letters, digits and '_.-', such as 'deliveries'.")
    return DynamicPartitions(name)


def require_key(key: str) -> None:
    """Raise ConfigError for a key that no set can have."""
    try:
        segment_of(key)
    except PartitionKeyError as error:
        raise ConfigError(str(error)) from None
    if RANGE in key or any(not character.isprintable() for character in key):
        raise ConfigError(
            f"The partition key {key!r} has '...' or a character that cannot be printed in it, which Dagster refuses. "
            "Rename it."
        )


def listed(keys: Sequence[str]) -> str:
    """Some of the keys, in quotes."""
    more = f", … ({len(keys)} in all)" if len(keys) > SHOWN_KEYS else ""
    return ", ".join(map(repr, keys[:SHOWN_KEYS])) + more
