"""The row of a step in the page's table, and its details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.experiment_page.page_steps import PageStep
from marin_assets.experiment_page.scrub.scrubber import Scrubber
from marin_assets.experiment_page.sums import NAMES, describe_amount, sums_of
from marin_assets.stages.report.numbers import format_number
from marin_assets.stages.report.records import StepRecord
from marin_assets.stages.report.report import main_counts
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.storage.usage.cost_estimate import PriceList
from marin_resources.types.output import describe_adopted
from marin_resources.types.record import Record

MOST_PARTITIONS = 200
MOST_PARENTS = 30


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table, in words."""

    name: str
    version: str
    state: State
    shown: str
    """State in words; of partitions, how many have which."""
    counts: tuple[tuple[str, str], ...]
    """Number and noun of its main counts."""
    size: str
    time: str
    cost: str
    """Chip-hours and dollars, as far as they are known."""
    finished: str


@dataclass(frozen=True, kw_only=True)
class Detail:
    """A step in detail."""

    name: str
    version: str
    state: State
    shown: str
    description: str
    parents: tuple[str, ...]
    more_parents: int
    adopted: str
    partitions: tuple[tuple[str, str, str], ...]
    """Key, state and size of partitions, the most urgent first."""
    more_partitions: int


def row_of(step: PageStep, read: StepRecord | None, prices: PriceList) -> Row:
    """The row of a step; `read` is its whole record, if it is shown in detail."""
    sums = sums_of(step.records, prices) if step.records else {}
    amounts = {name: describe_amount(name, total) for name, total in sums.items()}
    size = ", ".join(filter(None, (amounts.get("bytes"), amounts.get("files"))))
    counts = () if read is None else tuple((_number(read, place), noun) for noun, place in main_counts(read))
    return Row(
        name=step.name,
        version=step.version,
        state=step.state,
        shown=_state(step),
        counts=counts,
        size=size,
        time=amounts.get("wall_s", ""),
        cost=", ".join(filter(None, (amounts.get("device_s"), amounts.get("dollars")))),
        finished=max((finished_on(record) for record in step.records), default=""),
    )


def detail_of(step: PageStep, read: StepRecord | None, scrub: Scrubber) -> Detail:
    """The details of a step, without the numbers and files of its record."""
    record = read.record if read is not None else Record()
    keyed = [(key, state_of(seen), seen) for key, seen in step.outputs.items() if key is not None]
    keyed.sort(key=lambda output: output[1] is State.COMPLETE)
    shown = [(key, NAMES[state], _size(seen.record)) for key, state, seen in keyed[:MOST_PARTITIONS]]
    return Detail(
        name=step.name,
        version=step.version,
        state=step.state,
        shown=_state(step),
        description=scrub.text(str(record.description or step.description or "")),
        parents=step.parents[:MOST_PARENTS],
        more_parents=len(step.parents) - len(step.parents[:MOST_PARENTS]),
        adopted=scrub.text(describe_adopted(record)),
        partitions=tuple(shown),
        more_partitions=len(keyed) - len(shown),
    )


def finished_on(record: Record) -> str:
    """The minute when an output was complete, UTC: "2026-11-28 02:41"; "" if it is not recorded."""
    return str(record.finished_at or "")[:16].replace("T", " ")


def _state(step: PageStep) -> str:
    if not step.is_partitioned:
        return NAMES[step.state]
    counts: Sequence[str] = [f"{step.states[state]:,} {NAMES[state]}" for state in State if step.states.get(state)]
    return ", ".join(counts) if step.outputs else "no partitions yet"


def _number(read: StepRecord, place: str) -> str:
    value = read.value(place)
    return "not recorded" if value is None else format_number(value, place)


def _size(record: Record) -> str:
    return "" if record.manifest.bytes is None else format_number(record.manifest.bytes, "bytes")
