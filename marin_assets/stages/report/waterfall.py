"""Draw the waterfall of a consolidation: incoming documents and tokens, those removed by each reason, those kept.

Sources are `waterfall.json` and the step's record. Consolidations that read each other's documents are one waterfall.
Rejected documents to read come from `rejected.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from marin_assets.stages.report.numbers import tagged
from marin_assets.stages.report.records import StepRecord, parents_of
from marin_resources.storage.files import read_json
from marin_resources.storage.paths import join

WATERFALL, REJECTED = "waterfall.json", "rejected.json"
WIDTH, ROW, TOP, LABEL, PANEL, NUMBER = 860, 26, 26, 284, 190, 95
MAX_TITLE_CHARACTERS = 36
DOCUMENTS = "documents"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One bar of the waterfall."""

    kind: str
    """ "total", "reject", "cut" or "kept"."""
    title: str
    step: str
    """Label of the step whose record has the numbers."""
    places: Mapping[str, str]
    """Unit -> place in the record."""
    span: Mapping[str, tuple[float, float]]
    """Unit -> (amount left after it, amount left before it): the ends of the bar."""


def waterfall_charts(records: Mapping[str, StepRecord]) -> list[tuple[str, str]]:
    """Return (labels of the steps, chart) of each chain of consolidations, in order."""
    return [(", ".join(chain), draw_waterfall(records, chain)) for chain in chains(records)]


def chains(records: Mapping[str, StepRecord]) -> list[list[str]]:
    """Return the labels of each chain of consolidations, from its first to its last."""
    chains_of_labels: list[list[str]] = []
    for label, step in records.items():
        if not step.has(WATERFALL):
            continue
        documents = step.value("config.documents_path")
        before = next(
            (chain for chain in chains_of_labels if records[chain[-1]].path == str(documents).rstrip("/")), None
        )
        if before and before[-1] in parents_of(step, records):
            before.append(label)
        else:
            chains_of_labels.append([label])
    return chains_of_labels


def draw_waterfall(records: Mapping[str, StepRecord], chain: Sequence[str]) -> str:
    rows = list(rows_of(records, chain))
    units = list(rows[0].places)
    totals = {unit: rows[0].span[unit][1] for unit in units}
    height = TOP + ROW * len(rows) + 6
    heads = "".join(
        f'<text class="tick" x="{LABEL + i * (PANEL + NUMBER)}" y="14">{unit}</text>' for i, unit in enumerate(units)
    )
    bars = "".join(draw_row(records, row, TOP + ROW * number, units, totals) for number, row in enumerate(rows))
    return (
        f'<svg class="chart waterfall" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Kept and rejected documents">{heads}{bars}</svg>'
    )


def draw_row(
    records: Mapping[str, StepRecord], row: Row, y: int, units: Sequence[str], totals: Mapping[str, float]
) -> str:
    parts = [f'<text class="label" x="{LABEL - 12}" y="{y + 15}" text-anchor="end">{escape(row.title)}</text>']
    for i, unit in enumerate(units):
        panel_x = LABEL + i * (PANEL + NUMBER)
        after, before = (PANEL * value / max(totals[unit], 1) for value in row.span[unit])
        width = max(before - after, 1.5)
        parts.append(
            f'<rect class="bar {row.kind}" x="{panel_x + after:.1f}" y="{y + 3}" width="{width:.1f}" '
            f'height="{ROW - 8}" rx="2"/>'
        )
        if place := row.places.get(unit):
            at = f'class="value {row.kind}" x="{panel_x + before + 7:.1f}" y="{y + 16}"'
            parts.append(tagged(records, row.step, place, tag="text", attributes=at))
    return "".join(parts)


def rows_of(records: Mapping[str, StepRecord], chain: Sequence[str]) -> Iterator[Row]:
    waterfalls = {label: read_json(join(records[label].path, WATERFALL)) for label in chain}
    first, last = chain[0], chain[-1]
    unit = "tokens" if all("tokens" in waterfall for waterfall in waterfalls.values()) else "bytes"
    units = (DOCUMENTS, unit)
    remaining = {name: waterfalls[first][name] for name in units}
    places = {DOCUMENTS: "result.documents", unit: f"result.{unit}_in"}
    whole = {name: (0, remaining[name]) for name in units}
    yield Row(kind="total", title="documents in", step=first, places=places, span=whole)
    for label in chain:
        for step in waterfalls[label]["steps"]:
            name = f"{step['attribute']}/{step['reason']}"
            span = {u: (remaining[u] - step[u], remaining[u]) for u in units}
            remaining = {u: remaining[u] - step[u] for u in units}
            places = {u: f"result.by_reason.{name}.{u}" for u in units if step[u] or u == DOCUMENTS}
            yield Row(kind=step["kind"], title=title_of(step), step=label, places=places, span=span)
    places = {DOCUMENTS: "result.kept", unit: f"result.{unit}_kept"}
    whole = {name: (0, waterfalls[last]["kept"][name]) for name in units}
    yield Row(kind="kept", title="kept", step=last, places=places, span=whole)


def title_of(step: Mapping[str, Any]) -> str:
    """Return "quality: low_quality"; only the attribute if it contains the reason, only the reason if both are long."""
    attribute, reason = str(step["attribute"]), str(step["reason"])
    if reason in attribute:
        return attribute
    return both if len(both := f"{attribute}: {reason}") <= MAX_TITLE_CHARACTERS else reason


def rejected_documents(step: StepRecord, count: int) -> list[dict[str, Any]]:
    """Return, for each reason of a consolidation: attribute, reason, documents, and `count` samples to read."""
    if not step.has(REJECTED):
        return []
    groups = read_json(join(step.path, REJECTED))["rejected"]
    return [{**group, "samples": group["samples"][:count]} for group in groups if group["samples"]]
