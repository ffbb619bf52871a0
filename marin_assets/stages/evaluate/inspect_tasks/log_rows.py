"""Rows of scores and of answers, from what `inspect_program.py` keeps of a log of Inspect.

A score of Inspect is a scorer's, with metrics over all samples; where a sample has several answers (epochs), a reducer
makes one value of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marin_assets.documents.scores import bounds_of
from marin_assets.stages.evaluate.scores import finite_numbers

ERRORS = ("stderr", "bootstrap_stderr")
"""Metrics that are standard errors of the others."""
MEANS = ("accuracy", "mean")
"""Metrics that are means over samples, to which the errors belong."""
VERDICTS: Mapping[Any, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, True: 1.0, False: 0.0}
"""Numbers of Inspect's verdicts: correct, partially so, incorrect, no answer."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Log = Mapping[str, Any]


def table_of(label: str, log: Log) -> list[dict[str, Any]]:
    """One row for each metric of a task, with the columns of `scores.csv`."""
    rows = []
    for score, names in _named_scores(log):
        numbers = finite_numbers({name: metric["value"] for name, metric in score["metrics"].items()})
        error = next((numbers[name] for name in ERRORS if name in numbers), None)
        rows += [
            {
                "task": label,
                "metric": names[metric],
                "value": value,
                "error": error if metric in MEANS else None,
                "n": score.get("scored_samples") or log["results"]["completed_samples"],
                "shots": None,
                "version": log["eval"]["task_version"],
                "higher_is_better": None,
            }
            for metric, value in numbers.items()
            if metric not in ERRORS
        ]
    return rows


def scores_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | int]]:
    """By task of a table: instances, each metric, its standard error and the bounds of its 95% confidence interval."""
    scores: dict[str, dict[str, float | int]] = {}
    for row in rows:
        of = scores.setdefault(row["task"], {"instances": row["n"]})
        of[row["metric"]] = row["value"]
        if row["error"] is not None:
            of[f"{row['metric']}_stderr"] = row["error"]
    return {task: {**of, **bounds_of(of)} for task, of in scores.items()}


def answer_rows(label: str, log: Log) -> list[dict[str, Any]]:
    """A row for each sample: its question and the model's answer, with those of further epochs as `extracted`, and the
    values of which a metric is the mean."""
    rows: dict[Any, dict[str, Any]] = {}
    for sample in sorted(log["samples"], key=lambda sample: sample["epoch"]):
        text = sample["output"].get("completion") or ""
        row = rows.setdefault(
            sample["id"],
            {
                "task": label,
                "doc_id": sample["id"],
                "target": sample["target"],
                "context": _question(sample),
                "generated": text,
            },
        )
        if extracted := _extracted(sample, text):
            row.setdefault("extracted", {}).update(extracted)
    for name, id_, value in _values(log):
        if id_ in rows:
            rows[id_][name] = value
    return list(rows.values())


def _named_scores(log: Log) -> list[tuple[Mapping[str, Any], dict[str, str]]]:
    """Each score with the names of its metrics here: with the scorer and the reducer where a task has several."""
    scores = (log["results"] or {}).get("scores") or []
    several = [len({score[part] for score in scores}) > 1 for part in ("name", "reducer")]
    named = []
    for score in scores:
        before = f"{score['name']}_" if several[0] else ""
        after = f"_{score['reducer']}" if several[1] and score["reducer"] else ""
        named.append((score, {metric: f"{before}{metric}{after}" for metric in score["metrics"]}))
    return named


def _values(log: Log) -> Iterator[tuple[str, Any, float | int]]:
    """The name of a metric, the id of a sample and its value, reduced over its epochs."""
    reduced = {(of["scorer"], of["reducer"]): of["samples"] for of in log["reductions"] or []}
    for score, names in _named_scores(log):
        means = [names[metric] for metric in MEANS if metric in names]
        by_name = reduced.get((score["name"], score["reducer"]))
        for sample in by_name or reduced.get((score["scorer"], score["reducer"]), []):
            value = sample["value"]
            of_score = value.get(score["name"]) if isinstance(value, Mapping) else value  # a scorer may have several
            verdict = VERDICTS.get(of_score) if isinstance(of_score, str | bool) else of_score
            for number in finite_numbers({"value": verdict}).values():
                yield from ((name, sample["sample_id"], number) for name in means)


def _extracted(sample: Mapping[str, Any], text: str) -> dict[str, str]:
    """The texts that the scorers took from the first answer to a sample, or a further answer."""
    if sample["epoch"] > 1:
        return {f"answer {sample['epoch']}": text}
    answers = {name: score.get("answer") for name, score in (sample["scores"] or {}).items()}
    return {name: str(answer) for name, answer in answers.items() if answer not in (None, "", text)}


def _question(sample: Mapping[str, Any]) -> str:
    """The text of a sample's input, with its choices by letter."""
    given = sample["input"]
    text = (
        given if isinstance(given, str) else "\n\n".join(f"{turn['role']}: {_text(turn['content'])}" for turn in given)
    )
    choices = [
        f"{LETTERS[place : place + 1] or place + 1}) {choice}" for place, choice in enumerate(sample["choices"] or [])
    ]
    return "\n\n".join([text, *(["\n".join(choices)] if choices else [])])


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or f"[{part.get('type')}]" for part in content)
