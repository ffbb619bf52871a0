"""Formulas of LaTeXML: their TeX, out of the MathML; and several of them as one display with aligned rows."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from marin_assets.documents.xml.math_text import ALTERNATIVE, ANNOTATION, linear
from marin_assets.stages.transform.html.html_marks import ATTRIBUTES

FORMULA, FORMULA_END = "\ufdee", "\ufdef"
"""Noncharacters around the number of a formula, in its place."""
PLACE = re.compile(f"{FORMULA}([0-9]{{1,9}}){FORMULA_END}")
MATH = re.compile(rf"<math\b({ATTRIBUTES})>|<img\b(?=[^<>]*\bltx_Math\b)({ATTRIBUTES})>")
MATH_TAG = re.compile(r"<(/?)math(?=[\s>])")
IMAGE_TEX = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""")
IS_BLOCK = re.compile(r"""\bdisplay\s*=\s*["']?block""")
WRAPPED = re.compile(r"(?<!\\)((?:\\\\)*)%[ \t]*\n\s*")
"""LaTeXML wraps long TeX with a comment at the end of the line."""
DISPLAY_STYLE = re.compile(r"\\displaystyle(?![A-Za-z])\s*")
GROUPED_STYLE = re.compile(r"\{\\displaystyle(?![A-Za-z])\s*([^{}]*)\}")
ENDS_WITH_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
ENDS_WITH_WORD = re.compile(r"\\[A-Za-z]+\Z")
BAR = re.compile(r"(\\*)\|(?=([A-Za-z])?)")
LINE_TOKEN = re.compile(r"\\\\|\\(?:begin|end)(?![A-Za-z])|\\.|[{}]", re.DOTALL)
PUNCTUATION = re.compile(r"[.,;:]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Formula:
    tex: str
    """TeX, or a linear form such as (a+b)/c of a formula without it."""
    is_tex: bool
    is_block: bool

    @property
    def inline(self) -> str:
        return f"${self.tex}$" if self.is_tex else self.tex


def without_formulas(page: str) -> tuple[str, list[Formula]]:
    """Return a page with places of formulas in their stead, and the formulas. Takes linear time."""
    if FORMULA in page or FORMULA_END in page:
        page = page.replace(FORMULA, "").replace(FORMULA_END, "")
    formulas: list[Formula] = []
    parts: list[str] = []
    done = 0
    while start := MATH.search(page, done):
        end = start.end()
        if start[2] is None:
            end = _end(page, start.end())
            if end < 0:
                break
            formula = formula_of(start[1] or "", page[start.end() : end])
        else:
            alternative = IMAGE_TEX.search(start[2])
            tex = (alternative[1] or alternative[2] or "") if alternative else ""
            formula = Formula(tex=clean_tex(html.unescape(tex)), is_tex=bool(tex.strip()), is_block=False)
        parts += (page[done : start.start()], f"{FORMULA}{len(formulas)}{FORMULA_END}")
        formulas.append(formula)
        done = end
    return "".join([*parts, page[done:]]), formulas


def _end(page: str, start: int) -> int:
    """The end of a <math> element of which the start tag ends at `start`; -1 if it is not closed."""
    depth = 1
    for tag in MATH_TAG.finditer(page, start):
        depth += -1 if tag[1] else 1
        if depth == 0:
            close = page.find(">", tag.start())
            return close + 1 if close >= 0 else -1
    return -1


def formula_of(attributes: str, content: str) -> Formula:
    """Return a <math> element. `alttext` is that of the whole; an annotation may be that of a formula in it."""
    alternative = ALTERNATIVE.search(attributes)
    tex = (alternative[1] or alternative[2] or "") if alternative else ""
    if not tex.strip() and (annotation := ANNOTATION.search(content)):
        tex = annotation[1]
    tex = clean_tex(html.unescape(tex))
    text = tex or " ".join(linear(content).split())
    return Formula(tex=text, is_tex=bool(tex), is_block=bool(IS_BLOCK.search(attributes)))


def clean_tex(tex: str) -> str:
    """Return TeX in one line without the comments that wrap it and without \\displaystyle in front."""
    tex = WRAPPED.sub(r"\1", tex) if "%" in tex else tex
    tex = " ".join(tex.split())
    while match := DISPLAY_STYLE.match(tex):
        tex = tex[match.end() :]
    if grouped := GROUPED_STYLE.fullmatch(tex):
        tex = grouped[1]
    return f"{tex} " if ENDS_WITH_BACKSLASH.search(tex) else tex  # a control space


def in_table(formula: Formula) -> str:
    r"""Return a formula for a cell of a Markdown table, which a bar would end: \vert for |, and \Vert for \|."""
    if "|" not in formula.tex or not formula.is_tex or r"\begin" in formula.tex:
        return formula.inline
    return f"${BAR.sub(_bar, formula.tex)}$"


def _bar(match: re.Match[str]) -> str:
    slashes = len(match[1])
    name = r"\Vert" if slashes % 2 else r"\vert"
    return "\\" * (slashes - slashes % 2) + name + (" " if match[2] else "")


@dataclass(kw_only=True)
class Equation:
    """An equation, or a group of them, while it is read: rows of cells of formulas and text."""

    is_eqnarray: bool
    rows: list[list[list[Formula | str]]] = field(default_factory=list)
    is_in_cell: bool = False

    def start_row(self) -> None:
        self.rows.append([])
        self.is_in_cell = False

    def start_cell(self) -> None:
        if not self.rows:
            self.start_row()
        self.rows[-1].append([])
        self.is_in_cell = True

    def add(self, part: Formula | str) -> None:
        if isinstance(part, str) and not part.strip():
            return
        if not self.is_in_cell:
            self.start_cell()
        self.rows[-1][-1].append(part)

    def blocks(self) -> Iterator[Formula | str]:
        """Yield displays, and the text that is between rows."""
        rows: list[list[str]] = []
        for row in self.rows:
            parts = [part for cell in row for part in cell]
            if parts and all(isinstance(part, str) for part in parts):
                yield from _display(rows)
                rows = []
                yield " ".join(part.strip() for part in parts if isinstance(part, str))
            elif cells := _cells(row, is_eqnarray=self.is_eqnarray):
                rows.append(cells)
        yield from _display(rows)


def _cells(row: Sequence[Sequence[Formula | str]], *, is_eqnarray: bool) -> list[str]:
    cells = [joined([part.tex if isinstance(part, Formula) else text_in_tex(part) for part in cell]) for cell in row]
    if is_eqnarray and len(cells) > 1:
        cells = [cells[0], joined(cells[1:])]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def text_in_tex(text: str) -> str:
    words = " ".join(html.unescape(text).split())
    return words if PUNCTUATION.fullmatch(words) else rf"\text{{ {words} }}"


def joined(parts: Sequence[str]) -> str:
    """Return TeX of parts, with a blank where a command would take in letters of the next one."""
    tex = ""
    for part in parts:
        tex += f" {part}" if part[:1].isalpha() and ENDS_WITH_WORD.search(tex) else part
    return tex


def has_lines(tex: str) -> bool:
    """Whether TeX has a line break outside of braces and environments."""
    depth = 0
    for token in LINE_TOKEN.finditer(tex) if r"\\" in tex else ():
        if token[0] == r"\\" and depth == 0:
            return True
        depth += token[0] in ("{", r"\begin")
        depth -= token[0] in ("}", r"\end")
    return False


def _display(rows: Sequence[list[str]]) -> Iterator[Formula]:
    if not rows:
        return
    widest = max(map(len, rows))
    if len(rows) == 1 and widest <= 2:
        tex = joined(rows[0])
        if has_lines(tex):  # of multline, whose name LaTeXML leaves out
            tex = rf"\begin{{gathered}}{tex}\end{{gathered}}"
    else:
        environment = "gathered" if widest == 1 else "aligned"
        lines = ["&".join(cells) for cells in rows]
        lines = [f"{{}}{line}" if line[0] in "[*" else line for line in lines]  # no argument of \\
        tex = rf"\begin{{{environment}}}{lines[0]}" + "".join(rf"\\ {line}" for line in lines[1:])
        tex += rf"\end{{{environment}}}"
    yield Formula(tex=tex, is_tex=True, is_block=True)
