"""The row of a step in the page's table, and its details."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from marin_assets.experiment_page.addresses import Addresses
from marin_assets.experiment_page.page_steps import PageStep
from marin_assets.experiment_page.sums import NAMES, describe_amount, sums_of
from marin_assets.stages.report.numbers import format_number
from marin_assets.stages.report.page_rows import Row, finished_on, main_counts
from marin_assets.stages.report.records import StepRecord
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.output.state_summary import State
from marin_resources.storage.usage.cost_estimate import PriceList
from marin_resources.types.output import describe_adopted
from marin_resources.types.record import Record

MOST_PARENTS = 30


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
    address: str
    """The page of its output on the server of this page; "" in a file."""


def row_of(step: PageStep, read: StepRecord | None, prices: PriceList, addresses: Addresses) -> Row:
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
        address=_address(step, addresses),
    )


def _address(step: PageStep, addresses: Addresses) -> str:
    """The address of what is stored of the step; "" if it was never begun."""
    return "" if set(step.states) == {State.MISSING} else addresses.output(step.path)


def detail_of(
    step: PageStep, read: StepRecord | None, scrub: Scrubber, addresses: Addresses, names: Collection[str]
) -> Detail:
    """The details of a step, without the numbers and files of its record. `names`: those of the steps of the page."""
    parents = [parent for parent in step.parents if parent in names][:MOST_PARENTS]
    record = read.record if read is not None else Record()
    return Detail(
        name=step.name,
        version=step.version,
        state=step.state,
        shown=_state(step),
        description=scrub.text(str(record.description or step.description or "")),
        parents=tuple(parents),
        more_parents=len(step.parents) - len(parents),
        adopted=scrub.text(describe_adopted(record)),
        address=_address(step, addresses),
    )


def _state(step: PageStep) -> str:
    if not step.is_partitioned:
        return NAMES[step.state]
    counts: Sequence[str] = [f"{step.states[state]:,} {NAMES[state]}" for state in State if step.states.get(state)]
    return ", ".join(counts) if step.outputs else "no partitions yet"


def _number(read: StepRecord, place: str) -> str:
    value = read.value(place)
    return "not recorded" if value is None else format_number(value, place)
