"""Results of `marin gc` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from marin_assets.inspection.gc.actions import Done
from marin_assets.inspection.gc.cost import MakingCost
from marin_assets.inspection.gc.proposals import Proposal, total_bytes
from marin_assets.inspection.gc.retention import Reason, count_kinds
from marin_assets.inspection.gc.survey import Look
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.notes.collection import Collected

SHOWN_KEPT = 20
DAY = timedelta(days=1)
HEADS = ("size", "age", "last use", "cost to make", "output")


def lines_of(survey: Look, prefix: str, now: datetime, *, named: bool) -> Iterator[str]:
    """A table of what could be collected, and what was kept: of outputs that were named each with its reason."""
    proposed, retained = survey.proposals.proposed, survey.proposals.kept
    if proposed:
        yield from _table([HEADS, *(_row(proposal, now) for proposal in proposed)])
    if named:
        yield from (f"kept: {path}: {reason.sentence}" for path, reason in list(retained.items())[:SHOWN_KEPT])
        if len(retained) > SHOWN_KEPT:
            yield f"kept: {len(retained) - SHOWN_KEPT} more; --json has all"
    counts = ", ".join(f"{count} {kind}" for kind, count in count_kinds(retained.values()).most_common())
    size, reasons = readable_bytes(total_bytes(proposed)), f" ({counts})" if counts else ""
    yield f"{_outputs(len(proposed))} that nothing needs, {size}; {len(retained)} kept{reasons}, at {prefix}"
    expired = [note for note in survey.stored.collected if note.is_over(now)]
    if expired:
        size = readable_bytes(sum(note.bytes or 0 for note in expired))
        yield f"{_outputs(len(expired))} past the grace time, {size}: marin gc --purge removes them."


def collected_lines(notes: Iterable[Collected], prefix: str, now: datetime) -> Iterator[str]:
    notes = list(notes)
    rows = [
        (
            readable_bytes(note.bytes) if note.bytes is not None else "?",
            "over" if note.is_over(now) else f"until {note.until[:16]}",
            note.by,
            note.relative,
            note.why,
        )
        for note in notes
    ]
    if rows:
        yield from _table([("size", "grace time", "by", "output", "why"), *rows], right=1)
    yield f"{_outputs(len(notes))} collected, {readable_bytes(sum(note.bytes or 0 for note in notes))}, at {prefix}"


def done_lines(done: Done, word: str) -> Iterator[str]:
    if done.kept:
        yield f"kept: {done.relative}: {done.kept}"
    else:
        yield f"{word}: {done.relative}, {readable_bytes(done.bytes)}{f', until {done.until}' if done.until else ''}"


def json_of(survey: Look) -> dict[str, Any]:
    proposed = survey.proposals.proposed
    return {
        "proposed": [_to_json(proposal) for proposal in proposed],
        "bytes": total_bytes(proposed),
        "kept": {path: _reason_json(reason) for path, reason in survey.proposals.kept.items()},
        "collected": collected_json(survey.stored.collected),
    }


def _reason_json(reason: Reason) -> dict[str, Any]:
    since = reason.since.isoformat() if reason.since else None
    return {"kind": reason.kind, "sentence": reason.sentence, "since": since}


def collected_json(notes: Iterable[Collected]) -> list[dict[str, Any]]:
    names = ("partition", "by", "why", "at", "until", "bytes", "files")
    return [{"output": note.relative, "step": note.name, **{n: getattr(note, n) for n in names}} for note in notes]


def done_json(done: Iterable[Done]) -> list[dict[str, Any]]:
    return [
        {
            "output": outcome.relative,
            "bytes": outcome.bytes,
            "until": outcome.until or None,
            "kept": outcome.kept or None,
        }
        for outcome in done
    ]


def _to_json(proposal: Proposal) -> dict[str, Any]:
    cost, stored = proposal.cost, proposal.stored
    return {
        "output": stored.relative,
        "step": stored.name,
        "partition": stored.partition,
        "bytes": stored.bytes,
        "finished_at": proposal.finished.isoformat() if proposal.finished else None,
        "last_use": proposal.last_use.isoformat() if proposal.last_use else None,
        "seconds": cost.seconds,
        "device_hours": cost.device_hours,
        "dollars": cost.dollars,
    }


def _row(proposal: Proposal, now: datetime) -> tuple[str, ...]:
    age = _days(now - proposal.finished) if proposal.finished else "?"
    used = f"{_days(now - proposal.last_use)} ago" if proposal.last_use else "?"
    return readable_bytes(proposal.stored.bytes), age, used, _cost(proposal.cost), proposal.stored.relative


def _cost(cost: MakingCost) -> str:
    if cost.seconds is None:
        return "not known"
    devices = f", {cost.device_hours:,.1f} device h" if cost.device_hours else ""
    dollars = f", ${cost.dollars:,.2f}" if cost.dollars is not None else ""
    return f"{_time(cost.seconds)}{devices}{dollars}"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _days(span: timedelta) -> str:
    return f"{span / DAY:.0f} d" if span >= 2 * DAY else f"{span / timedelta(hours=1):.0f} h"


def _outputs(count: int) -> str:
    return f"{count} output{'s' * (count != 1)}"


def _table(rows: list[tuple[str, ...]], right: int = 4) -> Iterator[str]:
    """The first `right` columns are of numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            f"{cell:>{width}}" if i < right else f"{cell:{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
