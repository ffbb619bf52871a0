"""The data sets that an output is computed from, as metadata: their sum as numbers, and a row for each."""

from __future__ import annotations

from typing import Any

from marin_assets.assets.metadata.tables import table
from marin_assets.plan.record_facts.origins import total_of_origins
from marin_assets.step.origin import Origin, Origins

UNKNOWN = "unknown"


def origins_of(origins: Origins) -> dict[str, Any]:
    """`licences`, `raw_bytes` and the table `raw_data`; nothing without a data set. A sum that lacks a size is marked
    by `raw_sizes_unknown`."""
    if not origins:
        return {}
    total = total_of_origins(origins)
    return {
        "licences": total.describe_licences(),
        "raw_bytes": total.bytes,
        **({"raw_sizes_unknown": total.sizes_unknown} if total.sizes_unknown else {}),
        "raw_data": table([_row(name, origin) for name, origin in origins.items()]),
    }


def _row(step: str, origin: Origin) -> dict[str, Any]:
    return {
        "bytes": UNKNOWN if origin.bytes is None else origin.bytes,
        "licence": origin.licence or UNKNOWN,
        "data set": origin.name,
        "step": step,
        "homepage": origin.homepage or "",
    }
