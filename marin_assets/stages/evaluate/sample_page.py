"""The page of the answers of an evaluation: each question with what the model chose or wrote. HTML and CSS alone.

In:  rows as in `samples.jsonl`, and the scores by task.
Out: `samples.html`: the first questions of each task, which two boxes limit to the right answers or to the wrong ones;
     of a question that is answered several times, the first answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

SHOWN = 200
"""Questions of a task."""
CONTEXT_CHARACTERS, TEXT_CHARACTERS = 3000, 2000
"""The end of a longer context is shown, and the beginning of a longer answer."""
CHOICES, CHOICE_CHARACTERS = 40, 200
"""Choices of a question, beside the true one and the chosen one; characters of each of that many."""
SHOWN_ANSWERS, ANSWER_CHARACTERS = 16, 500
"""The first answers to a question that is answered several times, and the beginning of each."""
LINES = 60
"""Lines of a context, and of an answer."""
RIGHT = ("acc", "exact_match", "accuracy", "pass@1", "pass_at_1")
"""Metrics of one question of which 1 is a right answer, the first that it has, with or without a filter."""

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Answers</title><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 24px auto; max-width: 1000px; padding: 0 16px; color: #222 }
article { border-left: 4px solid #bbb; padding: 2px 12px; margin: 14px 0; content-visibility: auto;
 contain-intrinsic-size: auto 240px }
article.right { border-color: #1a7f37 } article.wrong { border-color: #cf222e }
pre { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0;
 background: #f6f8fa; padding: 6px 8px }
table { border-collapse: collapse; width: 100%; table-layout: fixed } td { padding: 3px 8px; vertical-align: top;
 border-bottom: 1px solid #ddd; overflow-wrap: anywhere; white-space: pre-wrap }
td:first-child { width: 110px } td:last-child { width: 90px; text-align: right }
h2 { font-size: 18px; margin: 28px 0 4px; overflow-wrap: anywhere } h3 { font-size: 14px; margin: 4px 0 }
.muted { color: #666; font-weight: normal } label { margin-right: 16px }
body:has(#right:not(:checked)) .right, body:has(#wrong:not(:checked)) .wrong { display: none }
</style></head><body><h1>Answers</h1>
<p class="muted">Whether the training data hold these questions is searched later: the page of this output in the data
 browser (marin browse) has it.</p>
<p><label><input type="checkbox" id="right" checked> right</label><label><input type="checkbox" id="wrong" checked>
 wrong</label></p>
"""


def page_of_samples(rows: Iterable[Mapping[str, Any]], scores: Mapping[str, Mapping[str, float]]) -> bytes:
    """Return the page. `rows` are sorted by their task. Tasks that score whole texts have no answers to show."""
    parts = [HEAD]
    for task, of in groupby(rows, key=lambda row: row["task"]):
        answered = [row for row in of if "context" in row]
        if answered:
            parts.append(_section(task, answered, scores.get(task, {})))
    if len(parts) == 1:
        parts.append('<p class="muted">No task asks for an answer: whole texts were scored.</p>')
    return "".join([*parts, "</body></html>\n"]).encode(errors="replace")


def is_right(row: Mapping[str, Any]) -> bool | None:
    """Whether the answer is the right one, of several whether one is; None if no metric of the question decides it."""
    if "answers" in row:
        verdicts = [is_right(answer) for answer in row["answers"]]
        return None if None in verdicts else any(verdicts)
    with_filter = (name for metric in RIGHT for name in row if name.startswith(f"{metric}_"))
    name = next((metric for metric in RIGHT if metric in row), None) or next(with_filter, None)
    return None if name is None else bool(row[name] == 1)


def _section(task: str, rows: Sequence[Mapping[str, Any]], scores: Mapping[str, float]) -> str:
    named = [
        f"{name} {value:.4g}" + (f" ± {1.96 * scores[f'{name}_stderr']:.2g}" if f"{name}_stderr" in scores else "")
        for name, value in scores.items()
        if not name.endswith(("_stderr", "_lower95", "_upper95"))
    ]
    shown = f"{len(rows)} questions" if len(rows) <= SHOWN else f"the first {SHOWN} of {len(rows)} questions"
    return (
        f'<h2>{escape(task)}</h2><p class="muted">{escape(", ".join(named))}. Shown: {shown}; all are in '
        f"samples.jsonl.</p>{''.join(map(_article, rows[:SHOWN]))}"
    )


def _article(row: Mapping[str, Any]) -> str:
    right = is_right(row)
    kind = "" if right is None else "right" if right else "wrong"
    word = kind
    if kind and "answers" in row:
        word = f"{sum(map(bool, map(is_right, row['answers'])))} of {len(row['answers'])} right"
    context = row["context"]
    shown = "\n".join(context[-CONTEXT_CHARACTERS:].split("\n")[-LINES:])
    cut = _cut("the last", len(shown), len(context), "characters") if len(shown) < len(context) else ""
    answer = _choices(row) if "choices" in row else _generated(row)
    return (
        f'<article class="{kind}"><h3>{row["doc_id"]} <span class="muted">{word}</span></h3>'
        f"{cut}<pre>{'…' * bool(cut)}{escape(shown)}</pre>{answer}</article>\n"
    )


def _choices(row: Mapping[str, Any]) -> str:
    """A line for each choice: what it is to the task and to the model, its text, and its log-likelihood in nats."""
    targets = row["target"] if isinstance(row["target"], list) else [row["target"]]
    characters = max(CHOICE_CHARACTERS, TEXT_CHARACTERS // max(1, len(row["choices"]) // 4))
    lines = []
    for place, (choice, nats) in enumerate(zip(row["choices"], row["loglikelihoods"], strict=True)):
        is_true = place in targets or choice in targets
        marks = [word for word, is_so in (("true", is_true), ("chosen", place == row["pick"])) if is_so]
        if place < CHOICES or marks:
            text = _text(choice, characters)
            lines.append(f"<tr><td>{', '.join(marks)}</td><td>{text}</td><td>{nats:.2f}</td></tr>")
    count = len(row["choices"])
    cut = _cut("the true ones, the chosen one and the first", CHOICES, count, "choices") if count > len(lines) else ""
    return f"{cut}<table>{''.join(lines)}</table>"


def _generated(row: Mapping[str, Any]) -> str:
    if "answers" in row:
        return _repeated(row)
    extracted = row.get("extracted", {}).items()
    lines = (("written", row["generated"]), *extracted, ("true", row["target"]))
    return f"<table>{''.join(f'<tr><td>{_text(name)}</td><td>{_text(text)}</td></tr>' for name, text in lines)}</table>"


def _repeated(row: Mapping[str, Any]) -> str:
    """A line for each answer: whether it is right, its text, and what the filters leave of it."""
    lines = []
    for answer in row["answers"][:SHOWN_ANSWERS]:
        word = {True: "right", False: "wrong", None: "written"}[is_right(answer)]
        extracted = ", ".join(dict.fromkeys(answer.get("extracted", {}).values()))
        lines.append((word, _text(answer["generated"], ANSWER_CHARACTERS), _text(extracted, ANSWER_CHARACTERS)))
    if (more := len(row["answers"]) - SHOWN_ANSWERS) > 0:
        lines.append(("", f"and {more} more answers", ""))
    lines.append(("true", _text(row["target"]), ""))
    cells = (f"<tr><td>{word}</td><td>{text}</td><td>{extracted}</td></tr>" for word, text, extracted in lines)
    return f"<table>{''.join(cells)}</table>"


def _text(value: Any, characters: int = TEXT_CHARACTERS) -> str:
    text = str(value)
    shown = "\n".join(text[:characters].split("\n")[:LINES])
    cut = _cut("the first", len(shown), len(text), "characters") if len(shown) < len(text) else ""
    return f"{cut}{escape(shown)}{'…' * bool(cut)}"


def _cut(part: str, shown: int, whole: int, units: str) -> str:
    return f'<div class="muted">{part} {shown:,} of {whole:,} {units}</div>'
