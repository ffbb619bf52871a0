"""C4's filter: lines that are no sentences are cut, documents with what no prose has are rejected.

Raffel et al. 2020, arXiv:1910.10683, section 2.2, as datatrove 0.9 has it; the list of bad words is not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents.attributes import KEPT, Verdict
from marin_assets.stages.filter.family import rejected
from marin_assets.stages.filter.statistics import TextStatistics

CITATION = re.compile(r"\[(?:\d*|edit|citation needed)\]")
SENTENCE_ENDS = (".", "?", "!", '"', "'")
POLICY = re.compile(r"terms of use|(?:privacy|cookie) policy|uses cookies|use (?:of )?cookies")

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class C4Thresholds:
    """None or false asks for nothing."""

    max_word_length: int | None
    """Lines with a longer word, between whitespace, are cut."""
    citations: bool
    """[1], [edit] and [citation needed] are cut."""
    line_ends: bool
    """Lines that do not end in . ? ! " or ', or end in "...", are cut."""
    min_words_per_line: int | None
    """Lines with fewer are cut."""
    lorem_ipsum: bool
    """A document with "lorem ipsum" is rejected."""
    javascript: bool
    """Lines with "javascript" are cut."""
    curly_bracket: bool
    """A document with "{" is rejected."""
    policy: bool
    """Lines on terms of use, privacy or cookies are cut."""
    min_sentences: int | None
    """A document with fewer, in the lines that are left, is rejected."""


def judge_c4(statistics: TextStatistics, thresholds: C4Thresholds) -> Verdict:
    """Rejects, or cuts lines and citations: lines that are kept lose blanks at their ends and empty lines between."""
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
    return Verdict(keep=True, cut=tuple(cut)) if cut else KEPT


def stripped_lines(text: str) -> Iterator[tuple[int, str]]:
    """(start, line without blanks at its ends) of every line, as Unicode ends them."""
    start = 0
    for line in text.splitlines(keepends=True):
        begun = line.lstrip()
        yield start + len(line) - len(begun), begun.rstrip()
        start += len(line)


def complement(spans: list[Span], length: int) -> list[Span]:
    """The spans between `spans`, which are in order, and around them."""
    borders = [0, *(border for span in spans for border in span), length]
    return [(a, b) for a, b in zip(borders[::2], borders[1::2], strict=True) if a < b]


def _kept_of(line: str, start: int, thresholds: C4Thresholds) -> list[Span] | str | None:
    """What is kept of a line, None if nothing is, or why the document is rejected."""
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
    """The lines' spans, and between two lines one end of a line: a line feed if there is one."""
    spans: list[Span] = []
    for line in lines:
        if spans:
            gap = text[spans[-1][1] : line[0][0]]
            end = gap.find("\n") if "\n" in gap else len(gap.splitlines()[0])
            spans.append((spans[-1][1] + end, spans[-1][1] + end + 1))
        spans += line
    return spans


def _stripped(spans: list[Span], text: str) -> list[Span]:
    """The spans without the whitespace that their text begins and ends with: citations leave some."""
    whole = _text_of(text, spans)
    left, right = len(whole) - len(whole.lstrip()), len(whole.rstrip())
    stripped, at = [], 0
    for a, b in spans:
        first, last = max(left, at), min(right, at + b - a)
        if first < last:
            stripped.append((a + first - at, a + last - at))
        at += b - a
    return stripped


def _text_of(text: str, spans: list[Span]) -> str:
    return "".join([text[a:b] for a, b in spans])
