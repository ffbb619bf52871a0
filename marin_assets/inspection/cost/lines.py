"""Costs as lines for people: the sums, what they lack, and the outputs that cost most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from marin_assets.inspection.cost.sums import AMOUNTS, OutputCost, Total, total_of, unknown_prices
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.types.durations import readable_duration

MOST_OUTPUTS = 10
NAMES: Mapping[str, str] = {
    "wall_s": "time",
    "cpu_s": "CPU time",
    "device_s": "device time",
    "bytes_in": "read",
    "bytes_out": "written",
    "dollars": "price",
}
NOT_KNOWN = "not known"


def lines_of(made: Sequence[OutputCost], again: Sequence[OutputCost], today: str) -> Iterator[str]:
    """`again`: the same outputs made again. `today`: a sentence about what is complete."""
    was, now = total_of(made), total_of(again)
    rows = [(NAMES[name], _shown(name, was[name]), _shown(name, now[name])) for name in AMOUNTS]
    widths = [max(map(len, column)) for column in zip(("", "to make", ""), *rows, strict=True)]
    yield f"{'':{widths[0]}}  {'to make':>{widths[1]}}  to make all again"
    for name, before, after in rows:
        yield f"{name:{widths[0]}}  {before:>{widths[1]}}  {after}"
    moved = sum(output.transferred_bytes or 0 for output in made)
    if moved:
        dollars = sum(output.transferred_dollars or 0.0 for output in made)
        yield f"{readable_bytes(moved)} were moved between regions (${dollars:,.2f}, in the price of what has one)"
    yield today
    yield from gaps(made)
    if len(made) > 1:
        yield "most:"
        yield from map(_line, largest(made)[:MOST_OUTPUTS])
        if len(made) > MOST_OUTPUTS:
            yield f"  and {len(made) - MOST_OUTPUTS} more; --json has all"


def gaps(made: Sequence[OutputCost]) -> Iterator[str]:
    """Sentences about what is not known, and so is in no sum."""
    without = [output.label for output in made if not output.recorded]
    if without:
        yield f"{_of(len(without), len(made))} no record: {', '.join(without[:3])}{' …' if len(without) > 3 else ''}"
    recorded = [output for output in made if output.recorded]
    for name, total in total_of(recorded).items():
        if total.unknown and name != "dollars":
            yield f"{_of(total.unknown, len(made))} no record of {AMOUNTS[name]}"
    for why, count in unknown_prices(recorded).most_common():
        yield f"{_of(count, len(made))} no price: {why}"
    attempts = sum(output.cost.unknown_attempts for output in made)
    if attempts:
        yield f"{attempts} attempt{'s were' if attempts != 1 else ' was'} killed, and recorded no cost"


def largest(made: Sequence[OutputCost]) -> list[OutputCost]:
    """Outputs in descending order of cost: by price, then devices, then time."""
    return sorted(
        made, key=lambda output: tuple(-(output.amount(name) or 0) for name in ("dollars", "device_s", "wall_s"))
    )


def _line(output: OutputCost) -> str:
    parts = [_amount(name, output.amount(name)) for name in ("wall_s", "device_s", "dollars")]
    words = [parts[0], f"{parts[1]} of devices" if output.cost.device_s else "", parts[2] if output.dollars else ""]
    return f"  {output.label}: {', '.join(filter(None, words))}"


def _shown(name: str, total: Total) -> str:
    if not total.known:
        return NOT_KNOWN
    return f"{'at least ' if total.unknown else ''}{_amount(name, total.amount)}"


def _amount(name: str, amount: float | None) -> str:
    if amount is None:
        return NOT_KNOWN
    if name == "dollars":
        return f"${amount:,.2f}"
    return readable_bytes(amount) if name.startswith("bytes") else readable_duration(amount)


def _of(count: int, all_of: int) -> str:
    return f"{count} of {all_of} step{'s' * (all_of != 1)} {'has' if count == 1 else 'have'}"
