"""Compute the waterfall: the documents and bytes that each attribute removed, by reason, in the order of application.

    {"format_version": 1, "documents": 100, "bytes": 9000,
     "attributes": [{"name", "missing", "at_least", "at_most", "documents_missing",
                     "documents", "bytes", "documents_left", "bytes_left"}, …],
     "steps": [{"attribute", "kind": "reject" | "cut", "reason", "documents", "bytes", "documents_cut",
                "documents_left", "bytes_left"}, …],
     "kept": {"documents": 60, "bytes": 5000}}

Bytes are those of the texts in UTF-8; with a tokenizer, "tokens" and "tokens_left" are beside them. An attribute whose
thresholds compare another key than "value" has "key". A rejected document counts with its whole text. "cut" is the text
cut out of kept documents, and removes no document. So the totals of documents, bytes and tokens are the sums over all
steps and "kept".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marin_assets.stages.consolidate.attribute_spec import VALUE, Applied

FORMAT_VERSION = 1
REJECT, CUT = "reject", "cut"


def waterfall_of(counts: Mapping[str, int | float], attributes: Sequence[Applied]) -> dict[str, Any]:
    """Return the waterfall of the summed counts of all shards."""
    units = units_of(counts)
    whole = {"documents": counts["documents"], **{unit: counts[f"{unit}_in"] for unit in units}}
    remaining = dict(whole)
    steps: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    for applied in attributes:
        removed: dict[str, int | float] = dict.fromkeys(whole, 0)
        for step in _steps_of(applied.name, counts, units):
            for unit in removed:
                removed[unit] += step[unit]
                remaining[unit] -= step[unit]
            steps.append({**step, **_left(remaining)})
        summaries.append(
            {
                "name": applied.name,
                "missing": applied.missing,
                "at_least": applied.at_least,
                "at_most": applied.at_most,
                **({} if applied.key == VALUE else {"key": applied.key}),
                "documents_missing": counts.get(f"missing_{applied.name}", 0),
                **removed,
                **_left(remaining),
            }
        )
    return {
        "format_version": FORMAT_VERSION,
        **whole,
        "attributes": summaries,
        "steps": steps,
        "kept": {"documents": counts["kept"], **{unit: counts[f"{unit}_kept"] for unit in units}},
    }


def units_of(counts: Mapping[str, int | float]) -> list[str]:
    """Return the units that the texts were measured in: bytes, and tokens if a tokenizer was given."""
    return ["bytes", *(["tokens"] if "tokens_in" in counts else [])]


def _left(remaining: Mapping[str, int | float]) -> dict[str, int | float]:
    return {f"{unit}_left": number for unit, number in remaining.items()}


def _steps_of(attribute: str, counts: Mapping[str, int | float], units: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rejections of one attribute, most documents first, then its cuts."""
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
