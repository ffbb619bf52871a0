r"""Convert AsciiMath to LaTeX, by the grammar of ASCIIMathML (asciimath.org): "sum_(i=1)^n i^3=((n(n+1))/2)^2".

In:  the text between backquotes.
Out: LaTeX that MathJax and KaTeX read, without dollars. Every text has one: what is no symbol stays as it is, and a
     bracket that nothing closes is a character.

Brackets are matched once, before the expressions are read, so the time is linear but for the depth of brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from marin_assets.stages.transform.formulas.asciimath_symbols import (
    BINARY,
    FUNCTIONS,
    LEFT,
    RIGHT,
    SYMBOLS,
    UNARY,
)
from marin_resources.types.errors import MarinError

MOST_BRACKETS = 60
MOST_DEPTH = 120
"""Depth of brackets, and of symbols with their arguments, that is read. Deeper ones have no LaTeX."""
TEXT = re.compile(r'"([^"]*)"|(?:text|mbox)\(([^()]*)\)')
NUMBER = re.compile(r"\d+(?:\.\d+)?")
SPECIAL = str.maketrans(
    {char: f"\\{char}" for char in "#$%&_{}"} | {"\\": r"\backslash ", "~": r"\sim ", "^": r"\hat{}"}
)
NAMES = sorted({*SYMBOLS, *FUNCTIONS, *UNARY, *BINARY, *LEFT, *RIGHT}, key=lambda name: (-len(name), name))
NAME = re.compile("|".join(map(re.escape, NAMES)))


class AsciiMathError(MarinError, ValueError):
    """A formula that is too deep: one sentence."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """"name", "other" for a letter, a number or a text, "_", "^" or "/"."""
    text: str
    """The name, or the LaTeX of another one."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of LaTeX, and the same without the brackets around it."""

    latex: str
    bare: str


def asciimath_to_latex(text: str) -> str:
    """Return the LaTeX of a formula; "" for an empty one. Raises AsciiMathError."""
    tokens = _tokens(text)
    return _Reader(tokens, _matched(tokens)).expression(0, len(tokens))


def _tokens(text: str) -> list[Token]:
    tokens, position = list[Token](), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
        elif match := TEXT.match(text, position):
            tokens.append(Token("other", f"\\text{{{(match[1] or match[2] or '').translate(SPECIAL)}}}"))
            position = match.end()
        elif match := NUMBER.match(text, position):
            tokens.append(Token("other", match[0]))
            position = match.end()
        elif match := NAME.match(text, position):
            tokens.append(Token("name", match[0]))
            position = match.end()
        else:
            kind = text[position] if text[position] in "_^/" else "other"
            tokens.append(Token(kind, text[position].translate(SPECIAL)))
            position += 1
    return tokens


def _matched(tokens: list[Token]) -> dict[int, int]:
    """The closing bracket of each opening one. Raises AsciiMathError."""
    closing, opened = dict[int, int](), list[int]()
    for place, token in enumerate(tokens):
        if token.kind == "name" and token.text in RIGHT and opened:
            closing[opened.pop()] = place
        elif token.kind == "name" and token.text in LEFT:
            opened.append(place)
            if len(opened) > MOST_BRACKETS:
                raise AsciiMathError(f"More than {MOST_BRACKETS} brackets are open.")
    return closing


class _Reader:
    """Reads tokens between two places."""

    def __init__(self, tokens: list[Token], closing: dict[int, int]) -> None:
        self.tokens, self.closing, self.place, self.depth = tokens, closing, 0, 0

    def expression(self, start: int, end: int) -> str:
        """All parts between two places, and fractions of two neighbours."""
        before, self.place = self.place, start
        parts: list[str] = []
        while self.place < end:
            part = self.scripted(end)
            if self._is("/", end):
                self.place += 1
                below = self.scripted(end).bare if self.place < end else ""
                parts.append(f"\\frac{{{part.bare}}}{{{below}}}")
            else:
                parts.append(part.latex)
        self.place = before
        return " ".join(filter(None, parts))

    def scripted(self, end: int) -> Part:
        """A part with what is below and above it."""
        part = self.simple(end)
        scripts = ""
        for mark in "_^":
            if self._is(mark, end):
                self.place += 1
                scripts += f"{mark}{{{self.simple(end).bare if self.place < end else ''}}}"
        return Part(f"{part.latex}{scripts}", f"{part.latex}{scripts}") if scripts else part

    def simple(self, end: int) -> Part:
        """One symbol, group, root, accent or function. Raises AsciiMathError."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise AsciiMathError(f"More than {MOST_DEPTH} symbols stand within one another.")
        part = self._simple(end)
        self.depth -= 1
        return part

    def _simple(self, end: int) -> Part:
        token, place = self.tokens[self.place], self.place
        self.place += 1
        if token.kind in "_^/":  # it has nothing to its left
            return Part("", "")
        if token.kind == "other":
            return Part(token.text, token.text)
        name = token.text
        if self.closing.get(place, end) < end:
            return self.group(place, self.closing[place])
        if name in FUNCTIONS:
            is_alone = self.place >= end or self.tokens[self.place].kind in "_^/"
            latex = FUNCTIONS[name] if is_alone else f"{FUNCTIONS[name]} {self.simple(end).latex}"
            return Part(latex, latex)
        if name in UNARY:
            latex = UNARY[name].replace("#", self._argument(end))
            return Part(latex, latex)
        if name in BINARY:
            first, second = self._argument(end), self._argument(end)
            latex = BINARY[name].replace("#1", first).replace("#2", second)
            return Part(latex, latex)
        latex = SYMBOLS.get(name) or LEFT.get(name) or RIGHT.get(name, "")
        return Part(latex, latex)

    def group(self, start: int, end: int) -> Part:
        """The content of two brackets with them, or a matrix."""
        self.place = end + 1
        opening, closing = LEFT[self.tokens[start].text], RIGHT[self.tokens[end].text]
        rows = self.rows(start + 1, end)
        if not rows:
            inner = self.expression(start + 1, end)
        else:
            lines = r" \\ ".join(" & ".join(self.expression(*cell) for cell in row) for row in rows)
            inner = f"\\begin{{matrix}} {lines} \\end{{matrix}}"
        latex = f"\\left{opening} {inner} \\right{closing}" if opening + closing != ".." else inner
        return Part(latex, latex if rows else inner)

    def rows(self, start: int, end: int) -> list[list[tuple[int, int]]]:
        """The cells of a matrix, "[[a,b],[c,d]]": two or more groups of as many cells; [] for another content."""
        rows, place = list[list[tuple[int, int]]](), start
        while place < end:
            close = self.closing.get(place)
            if close is None or close >= end or self.tokens[place].text not in "([":
                return []
            rows.append(self.cells(place + 1, close))
            if close + 1 < end and self.tokens[close + 1].text != ",":
                return []
            place = close + 2
        is_matrix = len(rows) > 1 and len({len(row) for row in rows}) == 1
        return rows if is_matrix else []

    def cells(self, start: int, end: int) -> list[tuple[int, int]]:
        """The places between commas that are in no bracket."""
        cells, place, begun = list[tuple[int, int]](), start, start
        while place < end:
            if self.tokens[place].text == ",":
                cells.append((begun, place))
                begun = place + 1
            place = self.closing.get(place, place) + 1
        return [*cells, (begun, end)]

    def _argument(self, end: int) -> str:
        return self.simple(end).bare if self.place < end else ""

    def _is(self, kind: str, end: int) -> bool:
        return self.place < end and self.tokens[self.place].kind == kind
