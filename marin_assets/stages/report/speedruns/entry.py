"""A speedrun entry: the cost of a training, and the value of its model, with the keys of Marin's
`speedrun_results.json` (marin-community/marin):

    {"format_version": 1, "runs": [{"run_info": {"author": {…}, "model_flops": 1.8e18, …}}]}

Numbers are in operations, tokens and seconds. Keys that Marin's files lack, and ours have: `metric` (the key of the
ranked number; Marin's is MARINS_METRIC), `goal` ("min" or "max"), `label` (the recipe), `notes` (sentences), `steps`,
`timed_steps`, `starts`, `resumed_from_step`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

RESULTS = "speedrun_results.json"
FORMAT_VERSION = 1
MARINS_METRIC = "eval/paloma/c4_en/bpb"
TIME = "%Y-%m-%d %H:%M:%S UTC"
"""Form of `run_completion_timestamp`."""
BACKWARD = 3
"""Operations of a training step, in those of its forward pass, which `model_flops_per_token` counts."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry that `faults_of` finds nothing wrong in, as far as the properties read it."""

    name: str
    """The folder of its file below that which was read, or the name of its step without "speedruns/"."""
    info: Mapping[str, Any]
    """The fields of `run_info`."""
    also: tuple[str, ...] = ()
    """Further names of the same run."""

    @property
    def metric(self) -> str:
        return str(self.info.get("metric") or MARINS_METRIC)

    @property
    def goal(self) -> str:
        return str(self.info.get("goal") or "min")

    @property
    def value(self) -> float:
        return float(self.info[self.metric])

    @property
    def label(self) -> str:
        """The recipe: that of the file, or else the folder of its folder."""
        return str(self.info.get("label") or self.name.rpartition("/")[0] or self.name)

    @property
    def author(self) -> str:
        author = self.info.get("author")
        return str(author.get("name") or "") if isinstance(author, Mapping) else ""

    @property
    def model_size(self) -> int | None:
        """Parameters."""
        return self.info.get("model_size")

    @property
    def tokens(self) -> int | None:
        return self.info.get("total_tokens")

    @property
    def model_flops(self) -> float:
        return float(self.info["model_flops"])

    @property
    def hardware_flops(self) -> float | None:
        return self.info.get("training_hardware_flops")

    @property
    def time_s(self) -> float | None:
        return self.info.get("training_time")

    @property
    def mfu(self) -> float | None:
        return self.model_flops / self.hardware_flops if self.hardware_flops else None

    @property
    def completed(self) -> datetime | None:
        """The time of its end, UTC."""
        return time_of(self.info.get("run_completion_timestamp"))

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The numbers by which two entries are the same run."""
        return (self.metric, self.value, self.model_size, self.model_flops, self.hardware_flops, self.time_s)


def time_of(text: Any) -> datetime | None:
    """The time of a `run_completion_timestamp`; None for another text."""
    try:
        return datetime.strptime(text, TIME).replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return None


def results_file(infos: Iterable[Mapping[str, Any]]) -> bytes:
    """The bytes of a `speedrun_results.json`; equal for equal entries."""
    content = {"format_version": FORMAT_VERSION, "runs": [{"run_info": dict(info)} for info in infos]}
    return json.dumps(content, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"


def without_equals(entries: Iterable[Entry]) -> list[Entry]:
    """The entries, of which those with the same numbers are one, with the names of the others in `also`."""
    by_numbers: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        by_numbers.setdefault(entry.numbers, []).append(entry)
    return [
        Entry(name=first.name, info=first.info, also=(*first.also, *(other.name for other in others)))
        for first, *others in by_numbers.values()
    ]
