"""The rollouts of a training by lesson and by reason, which add up, and by their staleness; each a link to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from marin_assets.browse.query import address
from marin_assets.browse.rows.row_filter import KEPT
from marin_assets.browse.stored.reward_training import ROLLOUTS, RewardTraining
from marin_assets.stages.train.rl.measures.selection import SmallRow
from marin_assets.stages.train.rl.measures.tables import USED, count_reasons

MOST_BARS, MOST_LESSONS, MOST_REASONS = 40, 100, 60


def counts_of(training: RewardTraining) -> dict[str, Any] | None:
    """The table: a row for each lesson and one for all; a column for those that were made, are used, and each reason.
    None if not all tables were read."""
    if not training.is_whole or not training.tables:
        return None
    rows = [row for table in training.tables for row in table.rows]
    reasons = list(count_reasons(rows))[:MOST_REASONS]
    of_lesson: dict[str, list[SmallRow]] = {}
    for row in rows:
        of_lesson.setdefault(row["lesson"], []).append(row)
    lessons = sorted(of_lesson)
    return {
        "reasons": reasons,
        "rows": [
            *(_row(training, name, of_lesson[name], reasons) for name in lessons[:MOST_LESSONS]),
            _row(training, "", rows, reasons),
        ],
        "left_out": len(lessons[MOST_LESSONS:]),
        "made": len(rows),
        "steps": len({row["step"] for row in rows}),
        "staleness": _staleness(rows),
    }


def rollouts_address(training: RewardTraining, **conditions: object) -> str:
    """The address of the search of its rollouts."""
    return address("search", path=f"{training.state.place.text}/{ROLLOUTS}", **conditions)


def _row(training: RewardTraining, lesson: str, rows: Sequence[SmallRow], reasons: Sequence[str]) -> dict[str, Any]:
    counts = count_reasons(rows)

    def cell(reason: str) -> tuple[int, str]:
        chosen = {"fate": KEPT} if reason == USED else {"reason": reason}
        number = counts.get(reason, 0)
        return number, rollouts_address(training, lesson=lesson, **chosen) if number else ""

    return {
        "lesson": lesson,
        "made": len(rows),
        "link": rollouts_address(training, lesson=lesson) if lesson else "",
        "cells": [cell(reason) for reason in reasons],
    }


def _staleness(rows: Sequence[SmallRow]) -> list[dict[str, Any]]:
    """A bar for each number of updates by which the weights of used rollouts were older than their step."""
    counts = Counter(row["step"] - row["weights_step"] for row in rows if row["used"])
    largest = max(counts.values(), default=1)
    return [
        {"label": f"{age:,} update{'s' if age != 1 else ''}", "count": count, "size": round(100 * count / largest, 1),
         "link": ""}
        for age, count in sorted(counts.items())[:MOST_BARS]
    ]  # fmt: skip
