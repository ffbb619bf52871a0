"""The page of judgements: the scores, numbers about the judge, and examples to read. HTML and CSS alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

SHOWN, CHARACTERS = 10, 2000
"""Examples of a section, and characters of each text."""
HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Judgements</title><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 24px auto; max-width: 1000px; padding: 0 16px; color: #222 }
table { border-collapse: collapse; margin: 12px 0 } th, td { padding: 3px 12px; border: 1px solid #ddd }
th { text-align: left; overflow-wrap: anywhere } td { text-align: right } .muted { color: #666 }
h2 { font-size: 18px; margin: 28px 0 4px } h3 { font-size: 14px; margin: 4px 0; overflow-wrap: anywhere }
article { border-left: 4px solid #bbb; padding: 2px 12px; margin: 14px 0; content-visibility: auto;
 contain-intrinsic-size: auto 240px }
pre { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0;
 background: #f6f8fa; padding: 6px 8px }
</style></head><body><h1>Judgements</h1>
"""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A judgement, or an instruction without one."""

    title: str
    texts: Mapping[str, str]
    """Name -> text: the instruction, the answers, the judge's words."""


def page_of_judgements(
    scores: Mapping[str, Mapping[str, float]],
    numbers: Mapping[str, float],
    sections: Mapping[str, Sequence[Example]],
) -> bytes:
    """Return the page. `numbers` are about the judge and counts, `sections` examples by what they show."""
    parts = [HEAD, _scores(scores), _numbers(numbers), *(_section(*section) for section in sections.items())]
    return "".join([*parts, "</body></html>\n"]).encode(errors="replace")


def _scores(scores: Mapping[str, Mapping[str, float]]) -> str:
    if not scores:
        return '<p class="muted">Nothing was judged.</p>'
    rows = [
        f"<tr><th>{escape(task)}</th><th>{escape(metric)}</th><td>{value:.3f}{_half(of, metric)}</td>"
        f"<td>{of['instances']}</td></tr>"
        for task, of in scores.items()
        for metric, value in of.items()
        if metric != "instances" and not metric.endswith("_stderr")
    ]
    head = "<tr><th>task</th><th>metric</th><th>value, 95 % confidence</th><th>judged</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _half(of: Mapping[str, float], metric: str) -> str:
    error = of.get(f"{metric}_stderr")
    return "" if error is None else f" ± {1.96 * error:.3f}"


def _numbers(numbers: Mapping[str, float]) -> str:
    rows = (f"<tr><th>{escape(name)}</th><td>{value:.4g}</td></tr>" for name, value in numbers.items())
    return f"<table>{''.join(rows)}</table>"


def _section(title: str, examples: Sequence[Example]) -> str:
    if not examples:
        return ""
    shown = f"the first {SHOWN} of {len(examples):,}" if len(examples) > SHOWN else f"{len(examples)}"
    articles = "".join(
        f"<article><h3>{escape(example.title)}</h3>"
        + "".join(f'<span class="muted">{escape(name)}</span>{_text(text)}' for name, text in example.texts.items())
        + "</article>\n"
        for example in examples[:SHOWN]
    )
    return f'<h2>{escape(title)}</h2><p class="muted">{shown}; all are in judgements.jsonl.zst</p>{articles}'


def _text(text: str) -> str:
    return f"<pre>{escape(text[:CHARACTERS])}{'…' if len(text) > CHARACTERS else ''}</pre>"
