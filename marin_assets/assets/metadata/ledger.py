"""The ledger of a step on slices, as metadata: what its tries cost, and how much of that was kept."""

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
        "tries": table([_row(each) for each in tries[-MAX_ROWS:]]),
    }


def _row(each: Mapping[str, Any]) -> dict[str, Any]:
    """A row that says "?" where the end of a try is not known: its job was lost with it."""
    ended = each.get("ran_s") is not None
    return {
        "try": f"{each.get('attempt', '?')}.{each.get('number', '?')}",
        "end": (each.get("cause") or "returned") if ended else "lost with its job",
        "waited s": each.get("waited_s"),
        "startup s": each.get("startup_s") if ended else "?",
        "kept s": each.get("kept_s") if ended else "?",
        "lost s": each.get("lost_s") if ended else "?",
        "from step": "beginning" if each.get("resumed_from") is None else str(each["resumed_from"]),
        "slices": ", ".join(each.get("slices") or []) or "none",
        "hosts": ", ".join(each.get("hosts") or []),
        "error": each.get("error") or "",
    }
