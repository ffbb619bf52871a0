"""The expectations of an experiment, from the results of its reports: the page and a report have the same table.

In:  the records of steps. The result of a report has a `summary`: of each expectation the step, what was expected, the
     value, and whether it held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marin_assets.stages.report.numbers import format_number
from marin_assets.stages.report.records import StepRecord
from marin_assets.stages.report.report import is_number
from marin_resources.scrub.scrubber import Scrubber

MOST = 100
SHOWN_CHARACTERS = 200


def expectations_of(records: Mapping[str, StepRecord], scrub: Scrubber) -> list[dict[str, Any]]:
    """Rows of the table of expectations."""
    return [_row(row, scrub) for record in records.values() for row in _summary(record)][:MOST]


def _summary(record: StepRecord) -> Iterator[Mapping[str, Any]]:
    summary = record.result.get("summary")
    for row in summary if isinstance(summary, list) else []:
        if isinstance(row, Mapping) and isinstance(row.get("expected"), str) and isinstance(row.get("held"), bool):
            yield row


def _row(row: Mapping[str, Any], scrub: Scrubber) -> dict[str, Any]:
    value = row.get("found")
    return {
        "step": scrub.text(str(row.get("step") or ""))[:SHOWN_CHARACTERS],
        "link": "",
        "expected": scrub.text(row["expected"])[:SHOWN_CHARACTERS],
        "description": "",
        "shown": _shown(value, scrub),
        "held": row["held"],
    }


def _shown(value: Any, scrub: Scrubber) -> str:
    if value is None:
        return "not recorded"
    return format_number(value, "") if is_number(value) else scrub.text(str(value))[:SHOWN_CHARACTERS]
