"""Scores of lm-eval's results: by task, as a table, and drawn."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

QUESTIONS, TEXTS = "held_out_questions", "held_out_texts"
"""The held-out tasks."""
Z95 = 1.96
"""Half the width of a 95% confidence interval, in standard errors."""
COLUMNS = ("task", "metric", "value", "error", "n", "shots", "version", "higher_is_better")


def scores_of(results: Mapping[str, Any]) -> dict[str, dict[str, float | int]]:
    """Return by task: instances, each metric, its standard error and the bounds of its 95% confidence interval."""
    scores: dict[str, dict[str, float | int]] = {}
    for task, metrics in sorted(results["results"].items()):
        numbers = finite_numbers(metrics)
        task_scores: dict[str, float | int] = (
            {"instances": numbers.pop("sample_len")} if "sample_len" in numbers else {}
        )
        for key, value in numbers.items():
            metric, _, filter_name = key.partition(",")
            task_scores[metric if filter_name in ("", "none") else f"{metric}_{filter_name}"] = value
        scores[task] = {**task_scores, **bounds_of(task_scores), **chance_of(results["samples"].get(task, []))}
    return scores


def finite_numbers(values: Mapping[str, Any]) -> dict[str, float | int]:
    """Return the values that are finite numbers."""
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in values.items()}
    return {k: v for k, v in plain.items() if type(v) in (int, float) and math.isfinite(v)}


def bounds_of(task_scores: Mapping[str, float]) -> dict[str, float]:
    bounds: dict[str, float] = {}
    for metric, value in task_scores.items():
        error = task_scores.get(f"{metric}_stderr")
        if error is not None:
            bounds |= {f"{metric}_lower95": value - Z95 * error, f"{metric}_upper95": value + Z95 * error}
    return bounds


def chance_of(samples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the accuracy of guessing in a multiple-choice task; empty for other tasks."""
    counts = [len(row["choices"]) for row in map(sample_row, samples) if len(row.get("choices", ())) > 1]
    return {"chance": sum(1 / count for count in counts) / len(counts)} if counts else {}


def headline(scores: Mapping[str, Mapping[str, float | int]]) -> dict[str, float | int]:
    """Return the scores of the held-out tasks, for the top level of the result, where expectations look."""
    questions, texts = dict(scores.get(QUESTIONS, {})), dict(scores.get(TEXTS, {}))
    renamed = {"questions" if key == "instances" else key: value for key, value in questions.items()}
    return {**renamed, **{"texts" if key == "instances" else key: value for key, value in texts.items()}}


def table_of(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each metric of each task: COLUMNS. `error` is a standard error, `n` the number of instances; a value
    that lm-eval does not report is None."""
    rows: list[dict[str, Any]] = []
    for task, metrics in sorted(results["results"].items()):
        numbers = finite_numbers(metrics)
        for key, value in numbers.items():
            metric, comma, filter_name = key.partition(",")
            if not comma or metric.endswith("_stderr"):
                continue
            rows.append(
                {
                    "task": task,
                    "metric": metric if filter_name == "none" else f"{metric}_{filter_name}",
                    "value": value,
                    "error": numbers.get(f"{metric}_stderr,{filter_name}"),
                    "n": numbers.get("sample_len") or metrics.get("sample_len"),
                    "shots": results.get("n-shot", {}).get(task),
                    "version": results.get("versions", {}).get(task),
                    "higher_is_better": (results.get("higher_is_better", {}).get(task) or {}).get(metric),
                }
            )
    return rows


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The table with a header; None is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def sample_row(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return one question with the model's answer: log-likelihoods in nats, or the generated text."""
    arguments, answers = sample["arguments"], [answer[0] for answer in sample["resps"]]
    metrics = finite_numbers({name: sample[name] for name in sample["metrics"]})
    row = {"doc_id": sample["doc_id"], "target": sample["target"]}
    if isinstance(answers[0], str):
        return {**row, "context": arguments[0][0], "generated": answers[0], **metrics}
    if isinstance(answers[0], float):
        return {"doc_id": sample["doc_id"], "loglikelihood": answers[0], **metrics}
    scores = [answer[0] for answer in answers]
    count = len(scores) // 2 if "acc_mutual_info" in sample["metrics"] else len(scores)
    given, prior = scores[:count], scores[count:]
    row |= {"context": arguments[0][0], "choices": [argument[1].strip() for argument in arguments[:count]]}
    row |= {"loglikelihoods": given, "pick": given.index(max(given))}
    if prior:
        gained = [with_context - without for with_context, without in zip(given, prior, strict=True)]
        row |= {"unconditional_loglikelihoods": prior, "pick_mutual_info": gained.index(max(gained))}
    return {**row, **metrics}


def bars_of(scores: Mapping[str, Mapping[str, float]]) -> list[tuple[str, float, float, float | None]]:
    """Return (label, value, half its 95% confidence interval, accuracy of guessing or None) of every accuracy."""
    return [
        (f"{task}\n{metric}", value, Z95 * task_scores[f"{metric}_stderr"], task_scores.get("chance"))
        for task, task_scores in scores.items()
        for metric, value in task_scores.items()
        if f"{metric}_stderr" in task_scores and 0 <= value <= 1
    ]


def draw_scores(bars: Sequence[tuple[str, float, float, float | None]]) -> bytes:
    """Draw a PNG: a bar for each accuracy with its 95% confidence interval, and a line at the accuracy of guessing."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.0, 1.7 * len(bars)), 4.0), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for place, (_, value, half, chance) in enumerate(bars):
        axes.bar(place, value, yerr=half, width=0.6, color="#4c78a8", capsize=5)
        axes.annotate(
            f"{value:.3f}", (place, value + half), ha="center", va="bottom", xytext=(0, 3), textcoords="offset points"
        )
        if chance is not None:
            axes.hlines(
                chance, place - 0.5, place + 0.5, color="#e45756", linestyle="--", label="" if place else "chance"
            )
    axes.set_xticks(range(len(bars)), [label for label, *_ in bars], fontsize=8)
    axes.set(ylim=(0, 1.1), ylabel="score, 95% confidence interval")
    axes.spines[["top", "right"]].set_visible(False)
    if any(chance is not None for *_, chance in bars):
        axes.legend(frameon=False, loc="upper left")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()
