"""Tables of a finished training on rewards: its lessons, its rollouts by reason, and some to read."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.rl.measures.passes import PASS_1, PASS_K
from marin_assets.stages.train.rl.measures.plot import REWARD
from marin_assets.stages.train.rl.measures.selection import SmallRow, read_small, rows_to_read, tables_in

USED = "used"
TEXT_CHARACTERS = 200
"""Those of a prompt, and of an answer: the record of the output has the table."""
AT_THE_END = {"reward_end": REWARD, "pass_at_1_end": PASS_1, "pass_at_k_end": PASS_K}


def tables_of(output_path: str, last_rows: Sequence[Row]) -> dict[str, Any]:
    """Return by_lesson (rollouts, those that are used, and means over `last_rows`), by_reason (rollouts that are used,
    and those that are not by their reason: they add up) and samples (`selection.py`)."""
    tables = {path: read_small(path) for path in tables_in(output_path)}
    small = [row for rows in tables.values() for row in rows]
    return {
        "by_lesson": _by_lesson(small, last_rows),
        "by_reason": [{"rollouts": count, "reason": reason} for reason, count in count_reasons(small).items()],
        "samples": [_sample(row) for _, _, row in rows_to_read(tables)],
    }


def count_reasons(rows: Sequence[SmallRow]) -> dict[str, int]:
    """USED, then each reason for which rollouts are not used, with their numbers."""
    counts = Counter(USED if row["used"] else row["reason"] for row in rows)
    return {USED: counts.pop(USED, 0), **dict(sorted(counts.items()))}


def _by_lesson(small: Sequence[SmallRow], last_rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    made = Counter(row["lesson"] for row in small)
    used = Counter(row["lesson"] for row in small if row["used"])
    return {
        lesson: {
            **{name: _mean(last_rows, f"{metric}/{lesson}") for name, metric in AT_THE_END.items()},
            "rollouts": made[lesson],
            USED: used[lesson],
        }
        for lesson in sorted(made)
    }


def _mean(rows: Sequence[Row], metric: str) -> float | None:
    values = [row[metric] for row in rows if metric in row]
    return round(statistics.fmean(values), 6) if values else None


def _sample(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "step": row["step"],
        "reward": row["reward"],
        "lesson": row["lesson"],
        "prompt": _cut(row["prompt"]),
        "answer": _cut(row["answer"]),
        "id": row["id"],
    }


def _cut(text: str) -> str:
    return f"{text[:TEXT_CHARACTERS]} …" if len(text) > TEXT_CHARACTERS else text
