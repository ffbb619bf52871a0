"""Divide a text at the borders of its paragraphs."""

from __future__ import annotations

from collections.abc import Iterator


def pieces(text: str, min_characters: int, max_characters: int) -> Iterator[str]:
    """Yield pieces of at least `min_characters`, divided at the last paragraph border before `max_characters`.

    Without a paragraph border the last line border is used. Only two kinds of pieces exceed `max_characters`: one long
    line, which is never divided, and a piece with a rest below `min_characters`, which stays with it.
    """
    start = 0
    while len(text) - start > max_characters + min_characters:
        borders = (
            text.rfind("\n\n", start + min_characters, start + max_characters + 2),
            text.rfind("\n", start + min_characters, start + max_characters + 1),
            text.find("\n", start + max_characters),
        )
        cut = next((border for border in borders if border >= 0), len(text))
        rest = cut
        while text.startswith("\n", rest):
            rest += 1
        if len(text) - rest < min_characters:
            break
        yield text[start:cut].rstrip("\n")
        start = rest
    yield text[start:]
