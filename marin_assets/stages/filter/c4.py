"""C4's filter: cut lines that are not sentences, reject documents with marks that prose does not contain.

Raffel et al. 2020, arXiv:1910.10683, section 2.2, as implemented in datatrove 0.9, without the list of bad words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents.attributes import KEPT, Decision
from marin_assets.stages.filter.spans import Span, complement
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import rejected

CITATION = re.compile(r"\[(?:\d*|edit|citation needed)\]")
SENTENCE_ENDS = (".", "?", "!", '"', "'")
POLICY = re.compile(r"terms of use|(?:privacy|cookie) policy|uses cookies|use (?:of )?cookies")


@dataclass(frozen=True, kw_only=True)
class C4Thresholds:
    """None or false disables a rule."""

    max_word_length: int | None
    """Cut lines with a longer word (characters between whitespace)."""
    citations: bool
    """Cut [1], [edit] and [citation needed]."""
    line_ends: bool
    """Cut lines that do not end in . ? ! " or ', or that end in "..."."""
    min_words_per_line: int | None
    """Cut lines with fewer words between whitespace."""
    lorem_ipsum: bool
    """Reject a document with "lorem ipsum"."""
    javascript: bool
    """Cut lines with "javascript"."""
    curly_bracket: bool
    """Reject a document with "{"."""
    policy: bool
    """Cut lines about terms of use, privacy or cookies."""
    min_sentences: int | None
    """Reject a document with fewer sentences in its remaining lines."""


def filter_c4(statistics: TextStatistics, thresholds: C4Thresholds) -> Decision:
    """Reject the document, or cut lines and citations. Blanks at the ends of kept lines and empty lines are cut too."""
    kept: list[list[Span]] = []
    sentences = 0
    for start, line in stripped_lines(statistics.text):
        spans = _kept_of(line, start, thresholds)
        if isinstance(spans, str):
            return rejected("c4", spans, 1)
        if spans is None:
            continue
        kept.append(spans)
        if thresholds.min_sentences is not None and sentences < thresholds.min_sentences:
            sentences += statistics.splitter.count_sentences(_text_of(statistics.text, spans))
    if thresholds.min_sentences is not None and sentences < thresholds.min_sentences:
        return rejected("c4", "min_sentences", sentences)
    cut = complement(_stripped(_with_line_ends(kept, statistics.text), statistics.text), len(statistics.text))
    return Decision(keep=True, cut=tuple(cut)) if cut else KEPT


def stripped_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, line without blanks at its ends) of every line, by Unicode's line ends."""
    start = 0
    for line in text.splitlines(keepends=True):
        begun = line.lstrip()
        yield start + len(line) - len(begun), begun.rstrip()
        start += len(line)


def _kept_of(line: str, start: int, thresholds: C4Thresholds) -> list[Span] | str | None:
    """Return the kept spans of a line, None if the line is cut, or the reason to reject the document."""
    words = line.split()
    longest = thresholds.max_word_length
    if longest is not None and len(line) > longest and any(len(word) > longest for word in words):
        return None
    spans = [(start, start + len(line))]
    if thresholds.citations and "[" in line and (citations := [match.span() for match in CITATION.finditer(line)]):
        spans = [(start + a, start + b) for a, b in complement(citations, len(line))]
        line = CITATION.sub("", line)
    if thresholds.line_ends and (not line.endswith(SENTENCE_ENDS) or line.endswith("...")):
        return None
    if thresholds.min_words_per_line is not None and len(words) < thresholds.min_words_per_line:
        return None
    lower = line.lower()
    if thresholds.lorem_ipsum and "lorem ipsum" in lower:
        return "lorem_ipsum"
    if thresholds.javascript and "javascript" in lower:
        return None
    if thresholds.curly_bracket and "{" in line:
        return "curly_bracket"
    if thresholds.policy and POLICY.search(lower):
        return None
    return spans or [(start, start)]


def _with_line_ends(lines: list[list[Span]], text: str) -> list[Span]:
    """Return the lines' spans with one line end between two lines: a line feed if one of them is."""
    spans: list[Span] = []
    for line in lines:
        if spans:
            gap = text[spans[-1][1] : line[0][0]]
            end = gap.find("\n") if "\n" in gap else len(gap.splitlines()[0])
            spans.append((spans[-1][1] + end, spans[-1][1] + end + 1))
        spans += line
    return spans


def _stripped(spans: list[Span], text: str) -> list[Span]:
    """Return the spans without whitespace at the ends of their whole text, which a cut citation can leave."""
    whole = _text_of(text, spans)
    leading, content_end = len(whole) - len(whole.lstrip()), len(whole.rstrip())
    stripped, at = [], 0
    for a, b in spans:
        first, last = max(leading, at), min(content_end, at + b - a)
        if first < last:
            stripped.append((a + first - at, a + last - at))
        at += b - a
    return stripped


def _text_of(text: str, spans: list[Span]) -> str:
    return "".join([text[a:b] for a, b in spans])
