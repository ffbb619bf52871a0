"""Where an adopted output is from, and which adopted outputs an output was made from, as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.assets.metadata.tables import table


def adoption_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """One text, and one table of the adopted outputs upstream; nothing without an adoption."""
    shown: dict[str, Any] = {}
    if adopted := record.get("adopted"):
        of = (adopted.get("of") or {}).get("name")
        made_as = f", made as {of}" if of else ""
        shown["adopted"] = (
            f"from {adopted['from']}{made_as}: {adopted['why']} "
            f"({adopted.get('by') or 'someone'}, {str(adopted.get('at') or '')[:19]})"
        )
    if made_from := record.get("adopted_inputs"):
        rows = [{"output": name, "from": each["from"], "why": each["why"]} for name, each in made_from.items()]
        shown["adopted_inputs"] = table(rows)
    return shown
