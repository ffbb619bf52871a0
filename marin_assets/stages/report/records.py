"""Read the records of the steps of a report: `<output>/.executor_info`, JSON that the worker wrote."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from marin_resources.storage.adoption.records import record_folder
from marin_resources.storage.files import exists, read_json
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import describe_adopted
from marin_resources.types.record import Record

RECORD = ".executor_info"
AVERAGING = "loop.ema_beta"
"""The field of a training that makes its exported model an average of the weights."""
UNAVERAGED = "loss_end_unaveraged"
"""In the result of such a training."""
OF_WEIGHTS, OF_AVERAGE = "eval/", "eval/ema/"
"""Prefixes of the validation metrics of the weights, and of those of their average."""


class ReportError(MarinError, ValueError):
    """A step cannot be reported. The message names it, and what to do."""


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    label: str
    path: str
    """The path of its data."""
    record: Record
    own_path: str = ""
    """The path of its record; it differs from `path` for an adopted output only."""

    @property
    def name(self) -> str:
        return self.record.name or self.label

    @property
    def version(self) -> str:
        """The hash at the end of the output path; empty for an override."""
        _, separator, tail = (self.own_path or self.path).rpartition(f"{self.name}-")
        return tail if separator and "/" not in tail else ""

    @property
    def result(self) -> Mapping[str, Any]:
        return self.record.result

    @property
    def tries(self) -> Sequence[Mapping[str, Any]]:
        """The tries of a step that ran on slices."""
        return self.record.tries

    @property
    def adopted(self) -> str:
        """The source and the reason of its adoption, or the adopted outputs it was computed from, as a phrase."""
        return describe_adopted(self.record)

    @property
    def dependencies(self) -> list[str]:
        """The paths of the step's inputs, relocated if the whole prefix was moved since."""
        own_path = self.own_path or self.path
        then, now = _roots(str(self.record.output_path or own_path).rstrip("/"), own_path)
        recorded = (path.rstrip("/") for path in self.record.dependencies)
        return [now + path.removeprefix(then) if path.startswith(then) else path for path in recorded]

    def value(self, dotted: str) -> Any:
        """Return the record's value at "manifest.bytes" or "result.scores.arc.acc"; None if absent."""
        value: Any = self.record.to_dict()
        for part in dotted.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def text(self, dotted: str) -> str:
        value = self.value(dotted)
        return "not recorded" if value is None else str(value)

    def time(self, dotted: str) -> str:
        """Return a time to the second, as "2025-11-21 06:20:14 UTC"."""
        value = self.value(dotted)
        return "not recorded" if value is None else f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M:%S} UTC"

    @property
    def is_averaged(self) -> bool:
        """Whether it is a training whose exported model is an average of the weights."""
        config = self.record.version.get("config") or {}
        return UNAVERAGED in self.result or config.get(AVERAGING) is not None

    def exported_metric(self, metric: str) -> str:
        """The metric of `metrics.jsonl` that is for the exported model what "eval/prose/loss" is for the weights."""
        of_weights = metric.startswith(OF_WEIGHTS) and not metric.startswith(OF_AVERAGE)
        return OF_AVERAGE + metric.removeprefix(OF_WEIGHTS) if of_weights and self.is_averaged else metric

    def has(self, name: str) -> bool:
        return exists(join(self.path, name))

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a JSONL file in the output."""
        fs, path = filesystem_of(join(self.path, name))
        with fs.open(path, "r", encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def csv_rows(self, name: str) -> Iterator[dict[str, str]]:
        """Yield the rows of a CSV file in the output."""
        fs, path = filesystem_of(join(self.path, name))
        with fs.open(path, "r", encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def read_records(inputs: Mapping[str, str]) -> dict[str, StepRecord]:
    """Read each label's record, in the order of dependencies. Raises ReportError for a step without a record."""
    if not inputs:
        raise ReportError("The report has no inputs. Pass the output path of each step to report.")
    records = {}
    for label, path in inputs.items():
        own_path = record_folder(path).rstrip("/")
        if not exists(join(own_path, RECORD)):
            raise ReportError(
                f"The step {label!r} has no record {RECORD!r} in {own_path!r}. Run the step, or leave it out of the "
                "report."
            )
        record = Record.from_dict(read_json(join(own_path, RECORD)))
        records[label] = StepRecord(label=label, path=path.rstrip("/"), record=record, own_path=own_path)
    return in_order(records)


def in_order(records: Mapping[str, StepRecord]) -> dict[str, StepRecord]:
    """Sort records by dependency: inputs first, otherwise in the given order."""
    ordered: dict[str, StepRecord] = {}

    def add(step: StepRecord) -> None:
        if step.label not in ordered:
            for label in parents_of(step, records):
                add(records[label])
            ordered[step.label] = step

    for step in records.values():
        add(step)
    return ordered


def parents_of(step: StepRecord, records: Mapping[str, StepRecord]) -> list[str]:
    """Return the labels of the steps whose outputs `step` reads."""
    return [label for label, other in records.items() if other.path in step.dependencies and label != step.label]


def _roots(then: str, now: str) -> tuple[str, str]:
    """Return two paths of one output without their common trailing names."""
    old, new = then.split("/"), now.split("/")
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    return "/".join(old), "/".join(new)


def flat_numbers(values: Mapping[str, Any], at: str) -> dict[str, float | int]:
    """Return every number in nested dicts, by its dotted place."""
    numbers: dict[str, float | int] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            numbers |= flat_numbers(value, f"{at}.{key}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers[f"{at}.{key}"] = value
    return numbers
