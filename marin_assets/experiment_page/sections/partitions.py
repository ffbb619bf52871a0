"""The partitions of an experiment: the state of each, its counts beside those of the previous one, and what differs.

In:  the steps, whose complete partitions have records.
Out: a matrix of keys and steps, and a table for each step with partitions. Of many keys the unfinished ones and the
     last are shown. Records are read for these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.experiment_page.addresses import Addresses
from marin_assets.experiment_page.page_steps import PageStep
from marin_assets.experiment_page.sums import NAMES
from marin_assets.stages.report.numbers import format_number
from marin_assets.stages.report.page_rows import finished_on, main_counts
from marin_assets.stages.report.records import StepRecord
from marin_resources.drift.drift import Drift, Kind, find_drift, without_plumbing
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Observed
from marin_resources.types.record import Record

MOST_STEPS = 12
"""Steps in the matrix, and tables."""
MOST_KEYS = 60
"""Keys of a table."""
MOST_UNFINISHED = 30
MOST_DIFFERENCES = 4
KEY = "<partition>"


@dataclass(frozen=True, kw_only=True)
class PartitionRow:
    """A partition of a step."""

    key: str
    state: State
    shown: str
    counts: tuple[tuple[str, str, str], ...]
    """Number, noun, and the change since the previous complete partition: "+12 %"."""
    size: str
    finished: str
    differs: tuple[str, ...]
    """Phrases about what was another when the previous one was computed: code, environment, fields."""
    previous: str
    """The key that it is compared with; "" for none."""
    address: str


@dataclass(frozen=True, kw_only=True)
class PartitionTable:
    """The partitions of a step."""

    step: str
    state: State
    shown: str
    """The number of partitions in each state."""
    rows: tuple[PartitionRow, ...]
    omitted: int
    """More keys."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """The states of several steps by key."""

    steps: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str] | None, ...]], ...]
    """A key, and for each step the state and its word; None for a step without this key."""
    omitted: int


@dataclass(frozen=True, kw_only=True)
class Partitions:
    matrix: Matrix | None
    """None for one step with partitions alone."""
    tables: tuple[PartitionTable, ...]
    omitted: int
    """More steps with partitions."""


def partitions_of(
    steps: Sequence[PageStep],
    scrub: Scrubber,
    addresses: Addresses,
    report: Callable[[str], None],
) -> Partitions:
    """The partitions of all steps. `report` takes a sentence about a record that cannot be read."""
    partitioned = [step for step in steps if step.is_partitioned and step.outputs]
    shown = partitioned[:MOST_STEPS]
    return Partitions(
        matrix=_matrix(shown) if len(shown) > 1 else None,
        tables=tuple(_table(step, scrub, addresses, report) for step in shown),
        omitted=len(partitioned) - len(shown),
    )


def _matrix(steps: Sequence[PageStep]) -> Matrix:
    keys = {str(key): None for step in steps for key in step.outputs}
    urgent = [key for key in keys if any(key in step.outputs and not _is_complete(step, key) for step in steps)]
    shown = _chosen(list(keys), urgent)
    rows = tuple(
        (key, tuple(_cell(step.outputs[key]) if key in step.outputs else None for step in steps)) for key in shown
    )
    return Matrix(steps=tuple(step.name for step in steps), rows=rows, omitted=len(keys) - len(shown))


def _is_complete(step: PageStep, key: str) -> bool:
    return state_of(step.outputs[key]) is State.COMPLETE


def _cell(observed: Observed) -> tuple[str, str]:
    state = state_of(observed)
    return state.value, NAMES[state]


def _chosen(keys: Sequence[str], urgent: Sequence[str]) -> list[str]:
    """All keys, or of many the first unfinished ones and the last ones, in their order."""
    if len(keys) <= MOST_KEYS:
        return list(keys)
    first = urgent[:MOST_UNFINISHED]
    chosen = {*first, *keys[len(first) - MOST_KEYS :]}
    return [key for key in keys if key in chosen]


def _table(step: PageStep, scrub: Scrubber, addresses: Addresses, report: Callable[[str], None]) -> PartitionTable:
    keys = [str(key) for key in step.outputs]
    shown = _chosen(keys, [key for key in keys if not _is_complete(step, key)])
    states = [f"{step.states[state]:,} {NAMES[state]}" for state in State if step.states.get(state)]
    return PartitionTable(
        step=step.name,
        state=step.state,
        shown=", ".join(states),
        rows=tuple(_rows(step, shown, scrub, addresses, report)),
        omitted=len(keys) - len(shown),
    )


def _rows(
    step: PageStep,
    keys: Sequence[str],
    scrub: Scrubber,
    addresses: Addresses,
    report: Callable[[str], None],
) -> Iterator[PartitionRow]:
    before: tuple[str, Record] | None = None
    for key in keys:
        observed = step.outputs[key]
        state = state_of(observed)
        record = _record(step.label(key), observed, report) if state is State.COMPLETE else None
        yield PartitionRow(
            key=key,
            state=state,
            shown=NAMES[state],
            counts=() if record is None else _counts(record, before[1] if before else None),
            size=""
            if record is None or record.manifest.bytes is None
            else format_number(record.manifest.bytes, "bytes"),
            finished="" if record is None else finished_on(record),
            differs=() if record is None or before is None else _differences(*before, key, record, scrub),
            previous=before[0] if before is not None and record is not None else "",
            address=addresses.output(observed.path),
        )
        before = before if record is None else (key, record)


def _record(label: str, observed: Observed, report: Callable[[str], None]) -> Record:
    """The whole record; that of the listing if it cannot be read."""
    if not observed.listed:
        return observed.record
    try:
        return read_record(observed.path) or observed.record
    except (MarinError, OSError) as error:
        report(f"The record of {label!r} cannot be shown: {error}")
        return observed.record


def _counts(record: Record, before: Record | None) -> tuple[tuple[str, str, str], ...]:
    step = StepRecord(label="", path="", record=record)
    return tuple(
        (format_number(step.value(place), place), noun, _change(step.value(place), before, place))
        for noun, place in main_counts(step)
    )


def _change(value: int, before: Record | None, place: str) -> str:
    """The change of a count: "+12 %", "−3.1 %", "was 0"; "" without a previous one, and for the same."""
    was: Any = None if before is None else StepRecord(label="", path="", record=before).value(place)
    if not isinstance(was, int) or isinstance(was, bool) or was == value:
        return ""
    if was <= 0:
        return f"was {was:,}"
    share = 100 * (value - was) / was
    text = f"{abs(share):,.0f} %" if abs(share) >= 10 else f"{abs(share):.1f} %"
    return f"{'+' if share > 0 else '−'}{text}"


def _differences(was_key: str, was: Record, key: str, now: Record, scrub: Scrubber) -> tuple[str, ...]:
    """Phrases about the facts that were others when the previous partition was computed. The key itself is none."""
    drift = without_plumbing(find_drift(was, now, {}))
    differing = [change for change in drift if not _is_of_key(change, was_key, key)]
    phrases = [scrub.text(_phrase(change, scrub)) for change in differing[:MOST_DIFFERENCES]]
    more = len(differing) - len(phrases)
    return (*phrases, *([f"and {more} more"] if more else []))


def _is_of_key(change: Drift, was_key: str, key: str) -> bool:
    return (
        change.kind is Kind.CONFIG
        and isinstance(change.was, str)
        and isinstance(change.now, str)
        and change.was.replace(was_key, KEY) == change.now.replace(key, KEY)
    )


def _phrase(change: Drift, scrub: Scrubber) -> str:
    if change.kind is Kind.CONFIG:
        name = change.what.rpartition(".")[2]
        was, now = (_short(scrub.json({name: value})[scrub.text(name)]) for value in (change.was, change.now))
        return f"{change.what}: {was} -> {now}"
    return {Kind.FUNCTION: "another function", Kind.SOURCE: f"code of {change.what}"}.get(
        change.kind, f"another {change.what}"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
