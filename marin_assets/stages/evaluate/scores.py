"""Scores of lm-eval's results: by task, as a table, and drawn."""

from __future__ import annotations

import hashlib
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.documents.scores import Z95, bounds_of

QUESTIONS, TEXTS = "held_out_questions", "held_out_texts"
"""The held-out tasks."""
NO_FILTER = "none"
"""lm-eval's name of the filter that changes no answer."""
PASSAGES = ("passage", "article", "story", "paragraph", "context")
"""Fields of a question in lm-eval's data sets that hold a text to which several questions may belong."""


def scores_of(results: Mapping[str, Any]) -> dict[str, dict[str, float | int]]:
    """Return by task: instances, each metric, its standard error and the bounds of its 95% confidence interval. A group
    without a metric of its own is left out."""
    scores: dict[str, dict[str, float | int]] = {}
    for task, metrics in sorted(results["results"].items()):
        numbers = finite_numbers(metrics)
        task_scores: dict[str, float | int] = (
            {"instances": numbers.pop("sample_len")} if "sample_len" in numbers else {}
        )
        task_scores |= {metric_name(key): value for key, value in numbers.items()}
        if task_scores.keys() - {"instances"}:
            scores[task] = {**task_scores, **bounds_of(task_scores), **chance_of(results["samples"].get(task, []))}
    return scores


def metric_name(key: str) -> str:
    """Return the name of a score that lm-eval calls "<metric>,<filter>" or "<metric>_stderr,<filter>".

    A filter other than "none" is a part of the metric's name: "exact_match_strict-match_stderr".
    """
    metric, _, filter_name = key.partition(",")
    if filter_name in ("", NO_FILTER):
        return metric
    base = metric.removesuffix("_stderr")
    return f"{base}_{filter_name}{metric.removeprefix(base)}"


def finite_numbers(values: Mapping[str, Any]) -> dict[str, float | int]:
    """Return the values that are finite numbers."""
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in values.items()}
    return {k: v for k, v in plain.items() if type(v) in (int, float) and math.isfinite(v)}


def scored_numbers(metrics: Mapping[str, Any]) -> dict[str, float | int]:
    """Return the metrics of a question that are finite numbers; a right answer may be true."""
    verdicts = {name: int(value) for name, value in metrics.items() if type(value).__name__ in ("bool", "bool_")}
    return finite_numbers({**metrics, **verdicts})


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
    """One row for each metric of each task, with the columns of `scores.csv`. `error` is a standard error, `n` the
    number of instances; a value that lm-eval does not report is None."""
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
                    "metric": metric_name(key),
                    "value": value,
                    "error": numbers.get(f"{metric}_stderr,{filter_name}"),
                    "n": numbers.get("sample_len") or metrics.get("sample_len"),
                    "shots": results.get("n-shot", {}).get(task),
                    "version": results.get("versions", {}).get(task),
                    "higher_is_better": (results.get("higher_is_better", {}).get(task) or {}).get(metric),
                }
            )
    return rows


def answer_rows(samples: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each question of a task. Questions about the same passage have its digest as `passage`."""
    rows: dict[Any, dict[str, Any]] = {}
    passages: dict[Any, str] = {}
    for sample in samples:  # one for each filter of the task
        doc_id, row = sample["doc_id"], sample_row(sample)
        rows.setdefault(doc_id, {}).update(row)
        filter_name = sample.get("filter", NO_FILTER)
        if "generated" in row and filter_name != NO_FILTER:
            rows[doc_id].setdefault("extracted", {})[filter_name] = str(sample["filtered_resps"][0])
        doc = sample["doc"]
        texts = [doc[name] for name in PASSAGES if isinstance(doc.get(name), str)] if isinstance(doc, Mapping) else []
        if texts:
            passages[doc_id] = hashlib.blake2b(texts[0].encode(errors="replace"), digest_size=8).hexdigest()
    counts = Counter(passages.values())
    for doc_id, passage in passages.items():
        if counts[passage] > 1:
            rows[doc_id]["passage"] = passage
    return list(rows.values())


def sample_row(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return one question with the model's answer: log-likelihoods in nats, or the generated text."""
    arguments, answers = sample["arguments"], [answer[0] for answer in sample["resps"]]
    filter_name = sample.get("filter", NO_FILTER)
    metrics = scored_numbers({metric_name(f"{name},{filter_name}"): sample[name] for name in sample["metrics"]})
    row = {"doc_id": sample["doc_id"], "target": sample["target"]}
    if isinstance(answers[0], str):
        repeated = {"answers": sample["answers"]} if "answers" in sample else {}
        return {**row, "context": arguments[0][0], "generated": answers[0], **repeated, **metrics}
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
    chances = [place for place, (*_, chance) in enumerate(bars) if chance is not None]
    for place, (_, value, half, chance) in enumerate(bars):
        axes.bar(place, value, yerr=half, width=0.6, color="#4c78a8", capsize=5)
        axes.annotate(
            f"{value:.3f}", (place, value + half), ha="center", va="bottom", xytext=(0, 3), textcoords="offset points"
        )
        if chance is not None:
            label = "chance" if place == chances[0] else ""
            axes.hlines(chance, place - 0.5, place + 0.5, color="#e45756", linestyle="--", label=label)
    axes.set_xticks(range(len(bars)), [label for label, *_ in bars], fontsize=8)
    axes.set(ylim=(0, 1.1), ylabel="score, 95% confidence interval")
    axes.spines[["top", "right"]].set_visible(False)
    if chances:
        axes.legend(frameon=False, loc="upper left")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()
