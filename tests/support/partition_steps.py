"""Steps with partitions for tests. Their function notes each call, and fails or waits at the keys that a test names."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_assets import THIS_OUTPUT_PATH, Step, this_partition, versioned
from marin_assets.step.partitions.sets import Partitions

WHOLE = "all"
"""In place of a key, for a step without partitions."""


@dataclass(frozen=True, kw_only=True)
class PartConfig:
    key: str = this_partition()
    value: int = versioned(1)
    reads: Any = None
    bad: tuple[str, ...] = ()
    """Keys that fail. Unversioned."""
    gate: str = ""
    """A file whose absence lets the functions of `waiting` end."""
    waiting: tuple[str, ...] = ()
    work_s: float = 0.0
    """The function takes so long. Unversioned."""
    calls: str = ""
    """A file that gets a line for each call."""
    output_path: str = THIS_OUTPUT_PATH


def make_part(config: PartConfig) -> dict[str, int]:
    output = Path(config.output_path)
    folder = output if config.key == WHOLE else output.parent
    with open(config.calls, "a") as file:
        file.write(f"{folder.name.rpartition('-')[0]}[{config.key}]\n")
    if config.key in config.bad:
        raise ValueError(f"the key {config.key!r} is not liked")
    while config.key in config.waiting and os.path.exists(config.gate):
        time.sleep(0.02)
    time.sleep(config.work_s)
    Path(config.output_path, "value.txt").write_text(f"{config.key} {config.value}")
    return {"length": len(config.key)}


def part(
    name: str,
    partitions: Partitions | None,
    calls: Path,
    *,
    per_run: int | None = None,
    tags: Mapping[str, str] | None = None,
    **fields: Any,
) -> Step:
    """A step named parts/<name>."""
    if partitions is None:
        fields["key"] = WHOLE
    return Step(
        name=f"parts/{name}",
        fn=make_part,
        config=PartConfig(calls=str(calls), **fields),
        partitions=partitions,
        max_partitions_per_run=per_run,
        tags=tags or {},
    )


def called(calls: Path) -> list[str]:
    """ "name[key]" of each call, sorted."""
    return sorted(calls.read_text().split()) if calls.exists() else []


def keys(count: int) -> Sequence[str]:
    return [f"k{number:04}" for number in range(count)]
