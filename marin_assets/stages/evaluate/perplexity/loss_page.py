"""The page of two models' losses: HTML and CSS alone.

A text is laid out when it is scrolled to (content-visibility), so a page of 10 MB scrolls. Each token is an <i> whose
class is its loss in steps of half a nat, and whose title is the loss; pieces that one model predicts better by at least
a nat are underlined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from marin_assets.stages.evaluate.perplexity.loss_spans import Losses, spans_of_both, tokens_of

LEVELS = 12
"""Levels of colour, in steps of half a nat."""
CLEARLY = 1.0
"""Nats by which a piece is predicted better."""

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 24px auto; max-width: 1500px; padding: 0 16px; color: #222 }}
table {{ border-collapse: collapse; margin: 12px 0 }} td, th {{ padding: 3px 14px 3px 0; text-align: right }}
td:first-child, th:first-child {{ text-align: left }} tr {{ border-bottom: 1px solid #ddd }}
article {{ border-top: 2px solid #bbb; padding: 8px 0; content-visibility: auto; contain-intrinsic-size: auto 400px }}
h2 {{ font-size: 15px; margin: 4px 0; overflow-wrap: anywhere }} .sides {{ display: flex; gap: 24px }}
.sides > p {{ flex: 1; min-width: 0; margin: 4px 0; font: 13px/1.6 ui-monospace, monospace; white-space: pre-wrap;
 overflow-wrap: anywhere }}
i {{ font-style: normal }}
.b {{ text-decoration: underline 2px #1a7f37 }} .w {{ text-decoration: underline 2px #cf222e }}
.muted {{ color: #666 }}
{levels}
</style></head><body>
"""


@dataclass(frozen=True)
class Compared:
    """A text that both models have read."""

    id: str
    domain: str
    text: str
    first: Losses
    second: Losses


def size_of_text(of: Compared) -> int:
    """At most so many bytes does the text take on the page."""
    pieces = len(of.first.ends) + len(of.second.ends)
    return 600 + 2 * len(escape(of.text).encode()) + 36 * pieces + 2 * len(escape(of.id + of.domain).encode())


def page_of(
    first: str, second: str, rows: Mapping[str, Mapping[str, Any]], shown: Sequence[Compared], *, of: int
) -> bytes:
    """Return the page. `rows`: numbers by domain; `of`: the number of all texts."""
    title = f"{first} and {second}, token by token"
    levels = "\n".join(f".n{i} {{ background: rgb(255 140 0 / {i / LEVELS:.2f}) }}" for i in range(LEVELS + 1))
    parts = [
        HEAD.format(title=escape(title), levels=levels),
        f"<h1>{escape(title)}</h1>",
        f'<p class="muted">Bits per byte, lower is better. Gap: {escape(second)} minus {escape(first)}, with its 95% '
        "confidence interval.</p>",
        _table(first, second, rows),
        f'<p class="muted">{len(shown)} of {of} texts: those on which the models differ most, a byte. The darker a '
        "token, the larger its loss; its title has it in nats. <i class=b>Green</i>: this model is better there by at "
        "least a nat; <i class=w>red</i>: the other is.</p>",
    ]
    for number, text in enumerate(shown):
        parts.append(_article(number, first, second, text))
    return "".join([*parts, "</body></html>\n"]).encode()


def _table(first: str, second: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("domain", "texts", first, second, "gap"))
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{row['texts']}</td><td>{row['first']:.4f}</td><td>{row['second']:.4f}</td>"
        f"<td>{row['gap']:+.4f}{_interval(row['gap_stderr'])}</td></tr>"
        for name, row in rows.items()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _interval(error: float | None) -> str:
    return "" if error is None else f" ± {1.96 * error:.4f}"


def _article(number: int, first: str, second: str, of: Compared) -> str:
    gap = sum(of.second.nats) - sum(of.first.nats)
    better = second if gap < 0 else first
    marks: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for span in spans_of_both(of.first, of.second):
        if abs(span.first - span.second) >= CLEARLY:
            is_first = span.first < span.second
            for side in (0, 1):
                marks[side].update(dict.fromkeys(range(span.start, span.end), "b" if is_first == (side == 0) else "w"))
    sides = "".join(
        f"<p>{''.join(_token(of.text, *token, marked) for token in tokens_of(losses))}</p>"
        for losses, marked in zip((of.first, of.second), marks, strict=True)
    )
    return (
        f'<article id="t{number}"><h2>{escape(of.id)} <span class="muted">{escape(of.domain)}; {abs(gap):.1f} nats '
        f'better: {escape(better)}</span></h2><div class="sides">{sides}</div></article>\n'
    )


def _token(text: str, start: int, end: int, nats: float, marked: Mapping[int, str]) -> str:
    level = min(LEVELS, max(0, int(nats * 2)))
    mark = next((marked[place] for place in range(start, end) if place in marked), None)
    kind = f"n{level}" if mark is None else f'"n{level} {mark}"'
    return f"<i class={kind} title={nats:.2f}>{escape(text[start:end], quote=False)}</i>"
