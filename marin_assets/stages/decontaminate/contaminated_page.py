"""The page of an evaluation's contaminated questions. HTML and CSS alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

SHOWN = 50
"""Questions of a task."""
TEXT_CHARACTERS = 1000
Z95 = 1.96
STYLE = """
:root { color-scheme: light dark; --line: #ccc; --quiet: #666; --mark: #ffe08a; --soft: #8881; }
@media (prefers-color-scheme: dark) { :root { --line: #555; --quiet: #aaa; --mark: #7a5c00; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }
.wide { overflow-x: auto; } table { border-collapse: collapse; } tr { border-bottom: 1px solid var(--line); }
th, td { text-align: left; padding: .2em .8em .2em 0; white-space: nowrap; } td.n, th.n { text-align: right; }
.quiet { color: var(--quiet); } mark { background: var(--mark); color: inherit; }
p, blockquote { overflow-wrap: anywhere; }
blockquote { background: var(--soft); margin: .3em 0 1em; padding: .5em 1em; }
"""


def contaminated_page(content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the page of `contaminated_scores.json` and of the rows of `contaminated.jsonl`, sorted by task."""
    return ("\n".join(_page(content, rows)) + "\n").encode("utf-8", "backslashreplace")


def _page(content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rule = content["rule"]
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width"><title>Contaminated questions</title>'
    yield f"<style>{STYLE}</style></head><body><h1>Contaminated questions</h1>"
    share = f", and at least {rule['min_share']:.0%} of them" if rule["min_share"] else ""
    yield (
        f"<p>A question is contaminated if a training document has {rule['min_matches']} or more of its n-grams of "
        f"{rule['ngram']} words{share}, by the method of GPT-3 (Brown et al. 2020). A score on clean questions that is "
        "lower by more than noise is a sign that the model remembers answers. ± is half of a 95% confidence "
        "interval.</p>"
    )
    yield f"<p>Searched: {escape(', '.join(content['searched']))}.</p>"
    if content["not_searched"]:
        others = escape("; ".join(content["not_searched"]))
        yield f"<p>The model was trained on more, which was not searched: {others}.</p>"
    yield '<div class="wide"><table><tr><th scope="col">task</th><th scope="col" class="n">questions</th>'
    yield '<th scope="col" class="n">contaminated</th><th scope="col" class="n">not searchable</th>'
    yield '<th scope="col">metric</th><th scope="col" class="n">all</th><th scope="col" class="n">contaminated</th>'
    yield '<th scope="col" class="n">clean</th></tr>'
    for task, of in content["tasks"].items():
        yield from _lines(task, of)
    yield "</table></div>"
    yield (
        '<p class="quiet">Not searchable: the question has too few words, or its n-grams are in too many documents.</p>'
    )
    for task, group in groupby(rows, key=lambda row: row["task"]):
        questions = list(group)
        more = f", the first {SHOWN} of them" if len(questions) > SHOWN else ""
        yield f"<h2>{escape(task)}</h2><p>{_count(len(questions), 'contaminated question')}{more}.</p>"
        yield from map(_question, questions[:SHOWN])
    yield "</body></html>"


def _lines(task: str, of: Mapping[str, Any]) -> Iterator[str]:
    """A line for each metric of a task."""
    counts = (
        f'<td class="n">{of["questions"]:,}</td><td class="n">{of["questions_contaminated"]:,} '
        f'<span class="quiet">{of["contaminated_share"]:.1%}</span></td>'
        f'<td class="n">{of["questions_not_searchable"]:,}</td>'
    )
    for number, (metric, scores) in enumerate(of["scores"].items() or [("", {})]):
        head = f'<th scope="row">{escape(task)}</th>{counts}' if not number else "<td></td>" * 4
        cells = "".join(f'<td class="n">{_score(scores.get(name))}</td>' for name in ("all", "contaminated", "clean"))
        yield f"<tr>{head}<td>{escape(metric)}</td>{cells}</tr>"


def _score(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return "–"
    half = "" if score["error"] is None else f' <span class="quiet">±{Z95 * score["error"]:.3f}</span>'
    return f"{score['value']:.3f}{half}"


def _question(row: Mapping[str, Any]) -> str:
    example, text = row["example"], row["text"]
    documents = ", ".join(f"{_count(n, 'document')} of {name}" for name, n in row["documents"].items())
    about = f"in {documents}; {example['share']:.0%} of its n-grams in {example['document']}"
    cut = "…" if len(text) > TEXT_CHARACTERS else ""
    before, words, after = (escape(example[key]) for key in ("before", "words", "after"))
    return (
        f'<p><b>{escape(str(row["doc_id"]))}</b> <span class="quiet">{escape(about)}</span><br>'
        f"{escape(text[:TEXT_CHARACTERS])}{cut}</p><blockquote>… {before} <mark>{words}</mark> {after} …</blockquote>"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
