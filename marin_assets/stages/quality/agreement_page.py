"""The page of a classifier's answers about examples that it was not trained on: by true and predicted label, to read.

In:  each example with both labels.   Out: `agreement.html`: a table of counts, and examples of each cell, wrong ones
first. HTML and CSS alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

PAGE = "agreement.html"
SHOWN, CHARACTERS = 10, 1200
"""Examples of a cell, and characters of each."""
HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Agreement</title><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 24px auto; max-width: 1000px; padding: 0 16px; color: #222 }
table { border-collapse: collapse } th, td { padding: 4px 12px; border: 1px solid #ddd; text-align: right }
td.wrong { background: #fbd9d6 } td.right { background: #d5f0da } .muted { color: #666 }
h2 { font-size: 18px; margin: 28px 0 4px; overflow-wrap: anywhere }
article { border-left: 4px solid #bbb; padding: 2px 12px; margin: 14px 0; overflow-wrap: anywhere }
pre { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0 }
</style></head><body><h1>Agreement with the labels</h1>
"""


@dataclass(frozen=True)
class Judged:
    """A held-out example with both labels."""

    id: str
    text: str
    label: str
    predicted: str


def page_of_agreement(judged: Sequence[Judged]) -> bytes:
    """Return the page."""
    labels = sorted({name for example in judged for name in (example.label, example.predicted)})
    cells: dict[tuple[str, str], list[Judged]] = {(true, guess): [] for true in labels for guess in labels}
    for example in judged:
        cells[example.label, example.predicted].append(example)
    head = "".join(f"<th>predicted {escape(label)}</th>" for label in labels)
    rows = "".join(
        f"<tr><th>{escape(true)}</th>{''.join(_count(true, guess, cells[true, guess]) for guess in labels)}</tr>"
        for true in labels
    )
    order = sorted(cells, key=lambda cell: (cell[0] == cell[1], cell))
    sections = "".join(_section(*cell, cells[cell]) for cell in order if cells[cell])
    about = f'<p class="muted">{len(judged):,} examples that the classifier was not trained on.</p>'
    return f"{HEAD}{about}<table><tr><th></th>{head}</tr>{rows}</table>{sections}</body></html>\n".encode(
        errors="replace"
    )


def _count(true: str, guess: str, examples: Sequence[Judged]) -> str:
    kind = "right" if true == guess else "wrong"
    return f'<td class="{kind}">{len(examples):,}</td>'


def _section(true: str, guess: str, examples: Sequence[Judged]) -> str:
    shown = f"the first {SHOWN} of {len(examples):,}" if len(examples) > SHOWN else f"{len(examples)}"
    articles = "".join(
        f'<article><span class="muted">{escape(example.id)}</span><pre>{escape(example.text[:CHARACTERS])}'
        f"{'…' if len(example.text) > CHARACTERS else ''}</pre></article>"
        for example in examples[:SHOWN]
    )
    return f'<h2>{escape(true)}, predicted {escape(guess)}</h2><p class="muted">{shown} examples</p>{articles}'
