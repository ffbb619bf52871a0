"""The time, cost and size of an experiment: of each step, and added up. What is not recorded is in no sum, and counted.

Prices are today's, as `marin cost` has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marin_assets.experiment_page.page_steps import PageStep
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.storage.output.state_summary import State
from marin_resources.storage.usage.cost_estimate import PriceList, bill_of
from marin_resources.types.durations import readable_duration
from marin_resources.types.record import Record

MOST = 1e24
AMOUNTS = ("wall_s", "device_s", "dollars", "bytes", "files")


@dataclass(frozen=True, kw_only=True)
class Sum:
    """An amount over some outputs."""

    amount: float
    known: int
    unknown: int
    """Outputs whose records lack it, or that have no price."""


Sums = dict[str, Sum]
"""Amount -> its sum."""


def sums_of(records: Iterable[Record], prices: PriceList) -> Sums:
    """The sums of `AMOUNTS` over these records."""
    rows = [_amounts(record, prices) for record in records]
    sums = {}
    for place, name in enumerate(AMOUNTS):
        amounts = [amount for row in rows if (amount := row[place]) is not None]
        sums[name] = Sum(amount=sum(amounts), known=len(amounts), unknown=len(rows) - len(amounts))
    return sums


def _amounts(record: Record, prices: PriceList) -> tuple[float | None, ...]:
    cost = cost_of(record)
    dollars = bill_of(cost, prices).dollars
    none = 0 if record.error else None  # an output that failed has no size that could be unknown
    size = [none if amount is None else amount for amount in (record.manifest.bytes, record.manifest.files)]
    return tuple(map(_plausible, (cost.wall_s, cost.device_s, dollars, *size)))


def _plausible(amount: float | None) -> float | None:
    """The amount; None for one that no output can have, as of a damaged record."""
    return amount if amount is not None and abs(amount) < MOST else None


def describe_amount(name: str, total: Sum) -> str:
    """A phrase: "3 h 20 min", "at least $34.20"; "" if it is not known of any output, and for no device hours."""
    if not total.known or (name in ("device_s", "bytes", "files") and not total.amount):
        return ""
    if name == "dollars":
        text = f"${total.amount:,.2f}"
    elif name == "device_s":
        text = f"{total.amount / 3600:,.1f} chip-hours"
    elif name == "files":
        text = f"{total.amount:,.0f} file{'s' * (total.amount != 1)}"
    else:
        text = readable_bytes(total.amount) if name == "bytes" else readable_duration(total.amount)
    return f"at least {text}" if total.unknown else text


def counts_of(steps: Sequence[PageStep]) -> str:
    """A phrase: "22 steps: 20 complete, 1 failed, 1 running"; of partitions, with their number."""
    counts: Counter[State] = Counter()
    for step in steps:
        counts.update(step.states)
    outputs = sum(counts.values())
    of_outputs = f", {outputs:,} outputs" if outputs != len(steps) else ""
    states = ", ".join(f"{counts[state]:,} {NAMES[state]}" for state in State if counts[state])
    return f"{len(steps):,} step{'s' * (len(steps) != 1)}{of_outputs}: {states or 'none'}"


NAMES = {state: "not computed" if state is State.MISSING else str(state) for state in State}
"""State -> the word that the page has for it."""
