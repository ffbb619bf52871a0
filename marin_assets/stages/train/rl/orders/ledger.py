"""The ledger of the free order: which groups were the batch of each step, written before the step is trained on.

    ledger/step-0000012.json   while it runs
    ledger.jsonl               at the end: a line a step

    {"step": 12, "batch": [["0000011-0003", 10], …], "again": [], "left_out": [["0000009-0001", 8, "too_old"]],
     "next": 27, "open": [25]}

A group is named by its id and the number of updates of the weights that sampled it. `next` is the number of the first
unit that was not begun then, and `open` are those that were being sampled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_resources.storage.files import (
    exists,
    names_in,
    read_bytes,
    read_json,
    remove_folder,
    write_bytes,
    write_json,
)
from marin_resources.storage.paths import join

FOLDER, WHOLE = "ledger", "ledger.jsonl"
BEFORE, SUFFIX = "step-", ".json"
DIGITS = 7


@dataclass(frozen=True)
class Named:
    """A group in the ledger."""

    group: str
    weights_step: int
    reason: str = ""
    """Why it was left out."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The batch of a step."""

    step: int
    batch: tuple[Named, ...]
    """Groups that are in their first batch; the table of the step has their rollouts."""
    again: tuple[Named, ...]
    """Further groups of the batch; tables of earlier steps have their rollouts."""
    left_out: tuple[Named, ...]
    """Groups that will be in no batch; the table of the step has their rollouts too."""
    next_unit: int
    open_units: tuple[int, ...]

    @property
    def new(self) -> tuple[Named, ...]:
        """The groups whose rollouts are in the table of the step, in its order."""
        return (*self.batch, *self.left_out)


def write_entry(output_path: str, entry: Entry) -> None:
    write_json(_path(output_path, entry.step), _as_json(entry))


def read_entries(output_path: str, first_step: int = 0) -> dict[int, Entry]:
    """The entries from a step on, by step. Raises TrainError for a damaged file."""
    whole = join(output_path, WHOLE)
    if exists(whole):
        entries = [_entry(whole, partial(json.loads, line)) for line in read_bytes(whole).splitlines()]
    else:
        entries = [_entry(path, partial(read_json, path)) for path in _paths(output_path, first_step)]
    return {entry.step: entry for entry in entries if entry.step >= first_step}


def combine_entries(output_path: str) -> None:
    """Make the files of the steps one, if any exist. A killed call is completed by the next."""
    whole, entries = join(output_path, WHOLE), read_entries(output_path)
    if entries and not exists(whole):
        lines = (json.dumps(_as_json(entries[step])) for step in sorted(entries))
        write_bytes(whole, "".join(f"{line}\n" for line in lines).encode())
    with suppress(FileNotFoundError):
        remove_folder(join(output_path, FOLDER))


def _paths(output_path: str, first_step: int) -> Iterator[str]:
    for name in names_in(folder := join(output_path, FOLDER)):
        number = name.removeprefix(BEFORE).removesuffix(SUFFIX)
        if name == f"{BEFORE}{number}{SUFFIX}" and number.isdigit() and int(number) >= first_step:
            yield join(folder, name)


def _path(output_path: str, step: int) -> str:
    return join(output_path, FOLDER, f"{BEFORE}{step:0{DIGITS}}{SUFFIX}")


def _as_json(entry: Entry) -> dict[str, Any]:
    return {
        "step": entry.step,
        "batch": [[named.group, named.weights_step] for named in entry.batch],
        "again": [[named.group, named.weights_step] for named in entry.again],
        "left_out": [[named.group, named.weights_step, named.reason] for named in entry.left_out],
        "next": entry.next_unit,
        "open": list(entry.open_units),
    }


def _entry(path: str, read: Callable[[], Any]) -> Entry:
    try:
        value = read()
        return Entry(
            step=value["step"],
            batch=tuple(Named(*named) for named in value["batch"]),
            again=tuple(Named(*named) for named in value["again"]),
            left_out=tuple(Named(*named) for named in value["left_out"]),
            next_unit=value["next"],
            open_units=tuple(value["open"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TrainError(
            f"The ledger at {path!r} is damaged ({error}), and it alone has the batches. Compute the step again."
        ) from error
