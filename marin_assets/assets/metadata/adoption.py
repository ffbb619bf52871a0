"""Origin of an adopted output, and of the adopted outputs that an output was computed from, as metadata."""

from __future__ import annotations

from typing import Any

from marin_assets.assets.metadata.tables import table
from marin_resources.types.record import Record


def adoption_of(record: Record) -> dict[str, Any]:
    """One text, and one table of the adopted outputs upstream; nothing without an adoption."""
    shown: dict[str, Any] = {}
    if adopted := record.adopted:
        of = adopted.of.get("name")
        made_as = f", made as {of}" if of else ""
        shown["adopted"] = (
            f"from {adopted.path}{made_as}: {adopted.why} ({adopted.by or 'someone'}, {(adopted.at or '')[:19]})"
        )
    if made_from := record.adopted_inputs:
        rows = [{"output": name, "from": origin.path, "why": origin.why} for name, origin in made_from.items()]
        shown["adopted_inputs"] = table(rows)
    return shown
