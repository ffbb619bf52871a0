"""The scores of an evaluation by task, and how many questions of each the training data hold: a part of other pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marin_assets.browse.query import address
from marin_assets.browse.site import Asked
from marin_assets.browse.stored.contamination import Contamination, contamination_of
from marin_assets.browse.stored.leaderboard import EVALUATION, PERPLEXITY, scores_in, usual_metric
from marin_assets.browse.stored.state import OutputState
from marin_assets.stages.report.compare_models import is_lower_better
from marin_assets.stages.report.models_by_tasks.contamination import NOBODY_LOOKED
from marin_assets.stages.report.models_by_tasks.significance import Z95

KINDS = (EVALUATION, "checkpoint_evaluation", PERPLEXITY)
"""First segments of the names of evaluations of a model."""
TASKS, NAMED = 300, 10
"""Tasks of a page, and names of data that were not searched."""


def scores(asked: Asked, state: OutputState) -> dict[str, Any] | None:
    """The facts of the template's part; None for an output without scores of a model."""
    kind = (state.record.name or "").partition("/")[0]
    by_task = dict(scores_in(state.record.result, kind, state.place.text)) if kind in KINDS else {}
    if not by_task:
        return None
    contamination = contamination_of(asked.places, [state])[state.place.text]
    rows = []
    for task, of in list(by_task.items())[:TASKS]:
        metric = usual_metric([of]) or ""
        rows.append(
            {
                "task": task,
                "metric": metric,
                "is_lower_better": is_lower_better(metric),
                "value": f"{of[metric].value:.3f}",
                "half": "" if (error := of[metric].error) is None else f"{Z95 * error:.3f}",
                "training": in_training(contamination, task),
            }
        )
    return {"rows": rows, "total": len(by_task), "not_searched": about_not_searched(contamination.not_searched)}


def in_training(contamination: Contamination, task: str) -> dict[str, Any]:
    """The contamination of a task: a phrase and a short one, whether some are in the training data, a link."""
    counts = contamination.tasks.get(task)
    if counts is None:
        missing = NOBODY_LOOKED if contamination.output else contamination.missing
        return {"phrase": missing, "short": missing, "is_contaminated": False, "link": ""}
    if contamination.page:
        link = address("file", path=contamination.page, page=1)
    else:
        link = address("output", path=contamination.output)
    part = ", of a part of the data" if contamination.not_searched else ""
    return {
        "phrase": counts.phrase,
        "short": f"{counts.short} in training{part}",
        "is_contaminated": bool(counts.contaminated),
        "link": link,
    }


def about_not_searched(names: Sequence[str]) -> str:
    """The data that were not searched, for people; empty for none."""
    more = f"; and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{'; '.join(name[:200] for name in names[:NAMED])}{more}"
