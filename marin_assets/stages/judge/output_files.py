"""The files of judgements: `judgements.jsonl.zst`, `samples.jsonl` and `scores.csv`, as evaluations have them.

`compare_models` reads the last two, and `scores` of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marin_assets.documents import Document, write_documents, write_rows
from marin_assets.documents.scores import as_csv
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

JUDGEMENTS, SAMPLES, SCORES, PAGE = "judgements.jsonl.zst", "samples.jsonl", "scores.csv", "judgements.html"


def write_judgements(
    output_path: str,
    judgements: Iterable[Document],
    samples: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Mapping[str, float]],
    page: bytes,
) -> None:
    """Write the four files. `judgements` are the judge's answers, `samples` rows by task."""
    write_documents(join(output_path, JUDGEMENTS), judgements)
    write_rows(join(output_path, SAMPLES), samples)
    write_bytes(join(output_path, SCORES), as_csv(list(_table(scores))))
    write_bytes(join(output_path, PAGE), page)


def task_of(task: str, category: str | None) -> str:
    """The name of the task of a sample: that of its category is a member of the whole."""
    return task if category is None else f"{task}/{category}"


def _table(scores: Mapping[str, Mapping[str, float]]) -> Iterable[dict[str, Any]]:
    for task, numbers in scores.items():
        for metric, value in numbers.items():
            if metric != "instances" and not metric.endswith("_stderr"):
                error = numbers.get(f"{metric}_stderr")
                row = {"task": task, "metric": metric, "value": value, "error": error, "n": numbers["instances"]}
                yield {**row, "higher_is_better": True}
