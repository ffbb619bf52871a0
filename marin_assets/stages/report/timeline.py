"""Draw the tries of a step on slices along the time: waiting, startup, work that was kept, and work that was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from marin_assets.stages.report.charts import ticks
from marin_resources.storage.output.notes.ledger import PARTS

WIDTH, LEFT, RIGHT, ROW, LEGEND, AXIS = 860, 110, 12, 24, 26, 24
MOST_ROWS = 40
WORDS = {"waited_s": "waited", "startup_s": "startup", "kept_s": "kept", "lost_s": "lost"}


def draw_tries(tries: Sequence[Mapping[str, Any]]) -> str:
    """One row for each of the last tries; hours, minutes or seconds since the first of them began to wait.

    A try whose end is not known, as its job was lost with it, shows its waiting alone, and a label about the loss.
    """
    tries = tries[-MOST_ROWS:]
    rows = [_spans(try_record) for try_record in tries]
    origin_s = min(spans[0][1] for spans in rows)
    end_s = max(max(end for _, _, end in spans) for spans in rows)
    unit, divisor = _unit(end_s - origin_s)
    marks = ticks(0, (end_s - origin_s) / divisor, 8)
    scale = (WIDTH - LEFT - RIGHT) / (marks[-1] * divisor)

    def x(seconds: float) -> float:
        return LEFT + (seconds - origin_s) * scale

    height = LEGEND + ROW * len(rows) + AXIS
    drawn = "".join(_row(LEGEND + ROW * place, try_record, rows[place], x) for place, try_record in enumerate(tries))
    axis = "".join(
        f'<line class="grid" x1="{x(origin_s + at * divisor):.1f}" x2="{x(origin_s + at * divisor):.1f}" y1="{LEGEND}" '
        f'y2="{height - AXIS}"/><text class="tick" x="{x(origin_s + at * divisor):.1f}" y="{height - 7}" '
        f'text-anchor="{"end" if at == marks[-1] else "middle"}">{at:g}{f" {unit}" if at == marks[-1] else ""}</text>'
        for at in marks
    )
    legend = "".join(
        f'<rect class="{part}" x="{LEFT + 110 * place}" y="4" width="14" height="12" rx="2"/>'
        f'<text class="tick" x="{LEFT + 110 * place + 20}" y="14">{word}</text>'
        for place, (part, word) in enumerate(WORDS.items())
    )
    return (
        f'<svg class="chart tries" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Tries by time">'
        f"{axis}{drawn}{legend}</svg>"
    )


def _spans(try_record: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Part, begin and end of each part of a try, in seconds since 1970."""
    began_s = datetime.fromisoformat(str(try_record["started_at"])).timestamp()
    at_s, spans = began_s - (try_record.get("waited_s") or 0.0), []
    for part in PARTS:
        until_s = at_s + (try_record.get(part) or 0.0)
        spans.append((part, at_s, until_s))
        at_s = until_s
    return spans


def _row(y: float, try_record: Mapping[str, Any], spans: Sequence[tuple[str, float, float]], x: Any) -> str:
    ended = try_record.get("ran_s") is not None
    outcome = (try_record.get("cause") or "returned") if ended else "lost with its job, so its end is not known"
    where = ", ".join(try_record.get("slices") or try_record.get("hosts") or [])
    title = escape(f"try {try_record.get('attempt')}.{try_record.get('number')} on {where}: {outcome}")
    bars = "".join(
        f'<rect class="{part}" x="{x(begin):.1f}" y="{y + 3}" width="{max(x(end) - x(begin), 0.5):.1f}" '
        f'height="{ROW - 8}"><title>{title}; {WORDS[part]} {end - begin:,.1f} s</title></rect>'
        for part, begin, end in spans
        if end > begin
    )
    label = "" if ended and not try_record.get("cause") else escape(outcome)
    return (
        f'<text class="label" x="{LEFT - 10}" y="{y + ROW / 2 + 4}" text-anchor="end">try '
        f"{try_record.get('attempt')}.{try_record.get('number')}</text>{bars}"
        f'<text class="tick" x="{x(spans[-1][2]) + 6:.1f}" y="{y + ROW / 2 + 4}">{label}</text>'
    )


def _unit(span_s: float) -> tuple[str, float]:
    return ("h", 3600.0) if span_s > 2 * 3600 else ("min", 60.0) if span_s > 120 else ("s", 1.0)
