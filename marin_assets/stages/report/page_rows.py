"""The rows of the table of steps, and the numbers of a step. A report and the page of an experiment have the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from marin_assets.stages.report.records import StepRecord, flat_numbers
from marin_resources.types.record import Record


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table. Its texts are words, or elements with tagged numbers."""

    name: str
    version: str
    state: str
    """The class of the chip."""
    shown: str
    """The words of the chip; "" for none. Of partitions, how many have which state."""
    counts: tuple[tuple[str, str], ...]
    """Number and noun of its main counts."""
    size: str
    time: str
    cost: str = ""
    """Device hours and price, as far as they are known."""
    finished: str
    share: float = 0.0
    """Percentage of the longest time, for a bar; 0 without one."""
    address: str = ""
    """The place of its data on the server of this page; "" in a file."""


def rows_of(
    records: Mapping[str, StepRecord], states: Mapping[str, str], number: Callable[[str, str], str]
) -> list[Row]:
    """The rows of the table of steps."""
    from markupsafe import Markup

    shares = shares_of_time(records)
    return [
        Row(
            name=label,
            version=step.version,
            state=states[label],
            shown={"held": "✓ as expected", "failed": "✗ not as expected"}.get(states[label], ""),
            counts=tuple((number(label, place), noun) for noun, place in main_counts(step)),
            size=Markup("{} in {} files").format(number(label, "manifest.bytes"), number(label, "manifest.files")),
            time=number(label, "duration_s"),
            finished=finished_on(step.record),
            share=shares[label],
        )
        for label, step in records.items()
    ]


def finished_on(record: Record) -> str:
    """The minute when an output was complete, UTC: "2026-11-28 02:41"; "" if it is not recorded."""
    return str(record.finished_at or "")[:16].replace("T", " ")


def main_counts(step: StepRecord) -> list[tuple[str, str]]:
    """Return name and place of the first three whole numbers at the top level of a result: its main counts."""
    counts = [name for name, value in step.result.items() if type(value) is int and not name.endswith("bytes")]
    return [(words(name), f"result.{name}") for name in counts[:3]]


def details_of(step: StepRecord) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return name and place of every number of the result: those at the top level, and those in nested dicts."""
    places = list(flat_numbers(step.result, "result"))
    top = [(words(place.removeprefix("result.")), place) for place in places if place.count(".") == 1]
    nested = [(place.removeprefix("result."), place) for place in places if place.count(".") > 1]
    return top, nested


def words(name: str) -> str:
    return name.replace("_", " ")


def shares_of_time(records: Mapping[str, StepRecord]) -> dict[str, float]:
    """Return each step's duration as a percentage of the longest, for the bars."""
    durations = {label: step.value("duration_s") or 0.0 for label, step in records.items()}
    longest = max([*durations.values(), 1e-9])
    return {label: round(100 * duration / longest, 1) for label, duration in durations.items()}
