"""The ledger of a step on slices, as metadata: the cost of its tries, and the share of it that was kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.assets.metadata.tables import MAX_ROWS, table
from marin_resources.storage.output.notes.ledger import ledger_of as ledger_sums
from marin_resources.types.record import Record

NAMES = ("goodput", "tries", "slices_waited_s", "startup_s", "kept_s", "lost_s", "device_hours")


def ledger_of(record: Record) -> dict[str, Any]:
    """Numbers, which Dagster plots over the materializations, and a table of the last tries; nothing without tries."""
    tries = record.tries
    if not tries:
        return {}
    sums = record.ledger or ledger_sums(tries)
    return {
        **({} if sums["goodput"] is None else {"goodput": sums["goodput"]}),
        "slices_waited_s": sums["waited_s"],
        **{name: sums[name] for name in ("startup_s", "kept_s", "lost_s")},
        **({"device_hours": sums["device_hours"]} if sums.get("device_hours") else {}),
        "tries": table([_row(entry) for entry in tries[-MAX_ROWS:]]),
    }


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a try, with "?" if its end is not known: its job was lost with it."""
    ended = entry.get("ran_s") is not None
    return {
        "try": f"{entry.get('attempt', '?')}.{entry.get('number', '?')}",
        "end": (entry.get("cause") or "returned") if ended else "lost with its job",
        "waited s": entry.get("waited_s"),
        "startup s": entry.get("startup_s") if ended else "?",
        "kept s": entry.get("kept_s") if ended else "?",
        "lost s": entry.get("lost_s") if ended else "?",
        "from step": "beginning" if entry.get("resumed_from") is None else str(entry["resumed_from"]),
        "slices": ", ".join(entry.get("slices") or []) or "none",
        "hosts": ", ".join(entry.get("hosts") or []),
        "error": entry.get("error") or "",
    }
