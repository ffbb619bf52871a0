"""The experiments of the prefixes that are shown, by their records, newest first."""

from __future__ import annotations

from typing import Any

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.experiments import Experiment, Summaries, Summary, list_experiments
from marin_assets.experiment_page.page_steps import URGENT
from marin_assets.experiment_page.sums import NAMES
from marin_resources.storage.output.state_summary import State

RECORDS = 25
"""Records of a page."""


def experiments(asked: Asked) -> Shown:
    name, start = asked.query.text("name"), asked.query.number("start")
    state = _state(asked.query.text("state"))
    records, unlisted = list_experiments(asked.places, name)
    rows, following = _rows(asked, records, start, state)
    facts = {
        "rows": rows,
        "total": len(records),
        "unlisted": unlisted,
        "name": name,
        "state": "" if state is None else state.value,
        "states": [(state.value, NAMES[state]) for state in URGENT],
        "prefixes": asked.places.prefixes,
        "start": start,
        "next": following if following < len(records) else None,
    }
    return Shown(template="experiments", facts=facts)


def _state(text: str) -> State | None:
    try:
        return State(text) if text else None
    except ValueError:
        names = ", ".join(state.value for state in URGENT)
        raise NotThereError(f"state is {text!r:.60}, expected one of {names}. Correct the address.") from None


def _rows(asked: Asked, records: list[Experiment], start: int, state: State | None) -> tuple[list[dict[str, Any]], int]:
    """The rows from the record number `start` on, of those with a step in this state; and the record to continue at."""
    summaries, rows = Summaries(asked.places), list[dict[str, Any]]()
    at = start
    while at < len(records) and len(rows) < RECORDS and not summaries.is_spent:
        part = records[at : at + RECORDS - len(rows)]
        for record, summary in zip(part, summaries.of(part), strict=True):
            if state is None or state in summary.states:
                rows.append(_row(asked, record, summary))
        at += len(part)
    return rows, at


def _row(asked: Asked, record: Experiment, summary: Summary) -> dict[str, Any]:
    urgent = min(summary.states, key=URGENT.index, default=None)
    return {
        "title": record.title,
        "address": address("experiment", path=record.place.text),
        "prefix": record.place.prefix if len(asked.places.prefixes) > 1 else "",
        "created": record.created[:16].replace("T", " "),
        "commit": summary.commit,
        "steps": summary.steps,
        "urgent": "" if urgent is None else urgent.value,
        "states": [(count, NAMES[state]) for state, count in summary.states.items()],
        "not_read": summary.not_read,
        "problem": summary.problem,
    }
