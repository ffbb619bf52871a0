"""The waterfall: how many documents and bytes each attribute took away, for which reason, one after the other.

    {"format_version": 1, "documents": 100, "bytes": 9000,
     "attributes": [{"name", "missing", "at_least", "at_most", "documents_missing",
                     "documents", "bytes", "documents_left", "bytes_left"}, …],
     "steps": [{"attribute", "kind": "reject" | "cut", "reason", "documents", "bytes", "documents_cut",
                "documents_left", "bytes_left"}, …],
     "kept": {"documents": 60, "bytes": 5000}}

Bytes are UTF-8 of texts; with a tokenizer there are "tokens" and "tokens_left" beside them. A rejected document counts
with its whole text; "cut" is what was cut out of kept documents, of which no document goes. So documents, bytes and
tokens are those of all steps and of what is kept, added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marin_assets.stages.consolidate.applied import Applied

FORMAT_VERSION = 1
REJECT, CUT = "reject", "cut"


def waterfall_of(counts: Mapping[str, int | float], attributes: Sequence[Applied]) -> dict[str, Any]:
    """The waterfall that the counts of all shards tell."""
    units = ["bytes", *(["tokens"] if "tokens_in" in counts else [])]
    whole = {"documents": counts["documents"], **{unit: counts[f"{unit}_in"] for unit in units}}
    left = dict(whole)
    steps: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    for applied in attributes:
        gone: dict[str, int | float] = dict.fromkeys(whole, 0)
        for step in _steps_of(applied.name, counts, units):
            for what in gone:
                gone[what] += step[what]
                left[what] -= step[what]
            steps.append({**step, **_left(left)})
        summaries.append(
            {
                "name": applied.name,
                "missing": applied.missing,
                "at_least": applied.at_least,
                "at_most": applied.at_most,
                "documents_missing": counts.get(f"missing_{applied.name}", 0),
                **gone,
                **_left(left),
            }
        )
    return {
        "format_version": FORMAT_VERSION,
        **whole,
        "attributes": summaries,
        "steps": steps,
        "kept": {"documents": counts["kept"], **{unit: counts[f"{unit}_kept"] for unit in units}},
    }


def _left(left: Mapping[str, int | float]) -> dict[str, int | float]:
    return {f"{what}_left": number for what, number in left.items()}


def _steps_of(attribute: str, counts: Mapping[str, int | float], units: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rejections, most documents first, then the cuts."""
    start = f"rejected_{attribute}/"
    reasons = [key.removeprefix(start) for key in counts if key.startswith(start)]
    for reason in sorted(reasons, key=lambda reason: (-counts[start + reason], reason)):
        yield {
            "attribute": attribute,
            "kind": REJECT,
            "reason": reason,
            "documents": counts[start + reason],
            **{unit: counts[f"{unit}_{start}{reason}"] for unit in units},
            "documents_cut": 0,
        }
    if documents_cut := counts.get(f"documents_cut_{attribute}", 0):
        yield {
            "attribute": attribute,
            "kind": CUT,
            "reason": CUT,
            "documents": 0,
            **{unit: counts[f"{unit}_cut_{attribute}"] for unit in units},
            "documents_cut": documents_cut,
        }
