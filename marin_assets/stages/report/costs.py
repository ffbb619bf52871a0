"""What the steps of a report have cost: which amounts are summed, and what the sums lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from marin_assets.stages.report.records import StepRecord

AMOUNTS = {"spent.wall_s": "time", "spent.cpu_s": "CPU time", "spent.device_s": "device time"}
"""Place in a record -> what it is. Attempts that failed are in it."""


def lacks_of(records: Mapping[str, StepRecord]) -> Iterator[str]:
    """Sentences about what is in no sum: what a record does not say, and inputs that the page does not have."""
    count = len(records)
    for place, name in AMOUNTS.items():
        silent = sum(step.value(place) is None for step in records.values())
        if silent:
            yield f"{silent} of {count} steps {'has' if silent == 1 else 'have'} no record of {name}."
    killed = sum(step.value("spent.unknown_attempts") or 0 for step in records.values())
    if killed:
        yield f"{killed} attempt{'s were' if killed != 1 else ' was'} killed, and recorded no cost."
    shown = {step.path for step in records.values()}
    outside = {path for step in records.values() for path in step.dependencies} - shown
    if outside:
        yield f"{len(outside)} input{'s are' if len(outside) != 1 else ' is'} not on this page, and in no sum."
