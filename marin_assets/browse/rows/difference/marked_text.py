"""The difference of two texts as pieces that are the same, removed or added: by words, of long texts by lines.

The same beginning and end are found by comparing slices, so texts may have any length. What differs between them is
compared by `difflib` up to a limit, beyond which it is one removed and one added piece. Long pieces are cut, and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from marin_assets.browse.cells.short_text import visible

SAME, OLD, NEW, CUT = "same", "old", "new", "cut"
MOST_WORDS, MOST_LINES, MOST_CHARACTERS = 1000, 1000, 60_000
"""Limits of what is compared. Of 1,000 words in the worst order a comparison takes half a second."""
AROUND = 120
"""Characters of an equal piece that are shown beside a difference."""
PIECE_CHARACTERS = 2000
MOST_PIECES = 300
WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of both texts (SAME), of the old one, of the new one; or a note of what is left out (CUT)."""

    kind: str
    text: str


def marked_text(old: str, new: str, *, is_fine: bool = True) -> list[Piece]:
    """The pieces of two different texts. `is_fine`: compare what lies between their ends by words."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    pieces = [Piece(SAME, old[:start])]
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    pieces += _compare(middle_old, middle_new) if is_fine else _whole(middle_old, middle_new)
    pieces.append(Piece(SAME, old[len(old) - end :]))
    return list(_shown([piece for piece in pieces if piece.text]))


def _common(old: str, new: str) -> int:
    """The characters of the longest common beginning."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _compare(old: str, new: str) -> list[Piece]:
    if not old or not new or len(old) > MOST_CHARACTERS or len(new) > MOST_CHARACTERS:
        return _whole(old, new)
    words = WORD.findall(old), WORD.findall(new)
    if max(map(len, words)) <= MOST_WORDS:
        return _by_words(*words)
    lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if max(map(len, lines)) > MOST_LINES:
        return _whole(old, new)
    pieces: list[Piece] = []
    for a, b, is_same in _blocks(*lines):
        inside = WORD.findall(a), WORD.findall(b)
        if not is_same and a and b and max(map(len, inside)) <= MOST_WORDS // 4:
            pieces += _by_words(*inside)
        else:
            pieces += _pieces(a, b, is_same)
    return pieces


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """The old and the new part of each block, and whether they are equal."""
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        yield "".join(old[a:b]), "".join(new[c:d]), tag == "equal"


def _by_words(old: Sequence[str], new: Sequence[str]) -> list[Piece]:
    """The pieces of a difference by words. Neighbouring changes with a space between are one: it is easier to read."""
    pieces: list[Piece] = []
    changed = ["", ""]
    blocks = [*_blocks(old, new), ("", "", True)]
    for index, (a, b, is_same) in enumerate(blocks):
        is_between = a == " " and any(changed) and index + 2 < len(blocks)
        if is_same and not is_between:
            pieces += [*_whole(*changed), Piece(SAME, a)]
            changed = ["", ""]
        else:
            changed = [changed[0] + a, changed[1] + b]
    return pieces


def _pieces(old: str, new: str, is_same: bool) -> list[Piece]:
    return [Piece(SAME, old)] if is_same else _whole(old, new)


def _whole(old: str, new: str) -> list[Piece]:
    return [Piece(kind, text) for kind, text in ((OLD, old), (NEW, new)) if text]


def _shown(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces as they are shown: equal ones cut to what is beside a difference, others to a limit."""
    for index, piece in enumerate(pieces[:MOST_PIECES]):
        text = piece.text
        if piece.kind != SAME:
            yield Piece(piece.kind, visible(text[:PIECE_CHARACTERS]).replace("\n", "↵\n"))
            if len(text) > PIECE_CHARACTERS:
                yield Piece(CUT, f"… cut of {len(text):,} characters")
            continue
        before, after = AROUND * (index > 0), AROUND * (index + 1 < len(pieces))
        if len(text) <= before + after + AROUND:
            yield Piece(SAME, visible(text))
            continue
        yield Piece(SAME, visible(text[:before]))
        yield Piece(CUT, f"… {len(text) - before - after:,} equal characters …")
        yield Piece(SAME, visible(text[len(text) - after :]) if after else "")
    if len(pieces) > MOST_PIECES:
        yield Piece(CUT, f"… and {len(pieces) - MOST_PIECES:,} more pieces")
