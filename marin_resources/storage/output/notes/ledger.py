"""The ledger of a record: the tries of a step on slices, and how much of their time was kept.

    waited_s        for the hosts
    startup_s       until the function began its work, or resumed it: processes, imports, compilation, loading
    kept_s          work that is in the output: up to the last checkpoint, or to the end of the try that succeeded
    lost_s          work after the last checkpoint of a try that failed
    goodput         kept_s over the sum of the four, between 0 and 1; None before any time was spent
    device_hours    hours of one GPU, or of one chip of a TPU, that the tries held; waiting holds none

A function that reports no progress (`marin_resources.step_api.progress`) has no startup, and a failed try of it is lost
whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST_TRIES = 200
"""Maximum number of tries that mark and record hold: the last ones. A step may be preempted ten thousand times."""
PARTS = ("waited_s", "startup_s", "kept_s", "lost_s")


def ledger_of(tries: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """The sums over tries, of one record or of several. A try whose job was lost with it has its waiting alone."""
    return sum_of([{**entry, "tries": 1, "device_hours": _device_hours(entry)} for entry in tries])


def sum_of(ledgers: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """The ledger of all of them together."""
    sums = {part: round(sum(ledger.get(part) or 0.0 for ledger in ledgers), 3) for part in PARTS}
    spent_s = sum(sums.values())
    goodput = round(sums["kept_s"] / spent_s, 4) if spent_s else None
    hours = round(sum(ledger.get("device_hours") or 0.0 for ledger in ledgers), 4)
    return {"tries": sum(ledger["tries"] for ledger in ledgers), **sums, "goodput": goodput, "device_hours": hours}


def facts_of(tries: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The facts of a mark about its attempt's tries; of a record also about those of `earlier`, the facts of marks."""
    entries = [entry for facts in earlier for entry in facts.get("tries", [])]
    before = [facts.get("ledger") or ledger_of(facts.get("tries", [])) for facts in earlier]
    return {"tries": [*entries, *tries][-MOST_TRIES:], "ledger": sum_of([*before, ledger_of(tries)])}


def _device_hours(entry: Mapping[str, Any]) -> float:
    return (entry.get("devices") or 0) * (entry.get("ran_s") or 0.0) / 3600
