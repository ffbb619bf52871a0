"""Presentation MathML as LaTeX, element by element of the MathML 3 recommendation (W3C, chapter 3).

In:  the content of a <math> element, as a page has it.
Out: LaTeX that MathJax and KaTeX read. A formula with an element that has no LaTeX raises MathmlError.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from typing import Any

from marin_assets.stages.transform.formulas import symbols
from marin_assets.stages.transform.formulas.latex import as_base, braced, joined
from marin_assets.stages.transform.formulas.symbols import VARIANTS, symbol
from marin_resources.types.errors import MarinError

MAX_DEPTH = 150
"""Levels of elements. Formulas that people write have fewer than 30."""
KEPT_ENTITIES = re.compile(r"&(?!(?:lt|gt|amp|#0*38|#0*60|#0*62|#x0*26|#x0*3c|#x0*3e);)#?\w{1,31};", re.IGNORECASE)
PREFIX = re.compile(r"(</?)[\w-]{1,20}:(?=[a-zA-Z])")
OPENING = {"(": "(", "[": "[", "{": r"\{", "⟨": r"\langle", "⌊": r"\lfloor", "⌈": r"\lceil"}
CLOSING = {")": ")", "]": "]", "}": r"\}", "⟩": r"\rangle", "⌋": r"\rfloor", "⌉": r"\rceil"}
EITHER = {"|": "|", "∣": "|", "‖": r"\|", "∥": r"\|"}
FENCES = OPENING | CLOSING | EITHER
MATRIX = {"()": "pmatrix", "[]": "bmatrix", "{}": "Bmatrix", "||": "vmatrix", "‖‖": "Vmatrix"}
TALL = frozenset({"mfrac", "mtable", "munderover", "munder", "mover", "msqrt", "mroot"})
SIZES = {"1.2em": r"\big", "1.623em": r"\Big", "2.047em": r"\bigg", "2.470em": r"\Bigg"}
SPACES = ((0.12, r"\!"), (0.19, r"\,"), (0.25, r"\:"), (0.3, r"\;"), (0.7, r"\ "), (1.5, r"\quad"))
"""Widths in em, each with the command of what is narrower."""
ENCLOSED = {
    "box": r"\boxed",
    "roundedbox": r"\boxed",
    "updiagonalstrike": r"\cancel",
    "downdiagonalstrike": r"\bcancel",
    "radical": r"\sqrt",
    "top": r"\overline",
    "bottom": r"\underline",
}


class MathmlError(MarinError):
    """A formula that has no LaTeX: an element that is unknown, or has the wrong number of children."""


def mathml_to_latex(content: str) -> str:
    """Return the content of a <math> element as LaTeX, without dollars; "" for an empty formula. Raises MathmlError."""
    from lxml import etree

    content = KEPT_ENTITIES.sub(lambda match: html.unescape(match[0]), PREFIX.sub(r"\1", content))
    parser = etree.HTMLParser(remove_comments=True, remove_pis=True, no_network=True)
    root = etree.fromstring(f"<html><body><math>{content}</math></body></html>", parser)
    element = root.find(".//math") if root is not None else None
    return "" if element is None else " ".join(_row(_children(element), 0).split())


def _children(element: Any) -> list[Any]:
    return [child for child in element if isinstance(child.tag, str) and not child.tag.startswith("annotation")]


def _latex(element: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise MathmlError(f"the formula has more than {MAX_DEPTH} levels")
    convert = _ELEMENTS.get(element.tag)
    if convert is None:
        raise MathmlError(f"<{element.tag}> has no LaTeX")
    return convert(element, depth + 1)


def _arguments(element: Any, depth: int, count: int) -> list[str]:
    """The LaTeX of the children. Raises MathmlError for another number than `count`."""
    children = _children(element)
    if len(children) != count:
        raise MathmlError(f"<{element.tag}> has {len(children)} children, expected {count}")
    return [_latex(child, depth) for child in children]


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _row(children: Sequence[Any], depth: int) -> str:
    """Children side by side: letters of one style are one word, fences get the height of what they enclose."""
    if depth > MAX_DEPTH:
        raise MathmlError(f"the formula has more than {MAX_DEPTH} levels")
    closing = _closing_fences(children)
    parts: list[str] = []
    index = 0
    while index < len(children):
        size, latex = (
            _word(children, index)
            or _fenced(children, index, closing.get(index), depth)
            or (1, _latex(children[index], depth))
        )
        parts.append(latex)
        index += size
    return joined(parts)


def _word(children: Sequence[Any], index: int) -> tuple[int, str] | None:
    """Letters of one mathvariant that stand side by side, such as those of \\mathrm{log}."""
    variant = children[index].get("mathvariant")
    end = index
    while end < len(children) and children[end].tag == "mi" and children[end].get("mathvariant") == variant:
        if variant is None or not (len(_text(children[end])) == 1 and _text(children[end]).isalnum()):
            break
        end += 1
    if end - index < 2 or variant not in VARIANTS:
        return None
    return end - index, f"{VARIANTS[variant]}{{{''.join(_text(child) for child in children[index:end])}}}"


def _fenced(children: Sequence[Any], index: int, end: int | None, depth: int) -> tuple[int, str] | None:
    """An opening fence with what it encloses, and its closing fence at `end`; None if no such thing is at the index."""
    fence = _fence(children[index])
    if fence is None or (end is None and fence != "{"):
        return None
    stretched = children[index].get("stretchy") == "true"
    inner = children[index + 1 : end] if end is not None else children[index + 1 :]
    if len(inner) == 1 and inner[0].tag == "mfrac" and _is_zero(inner[0].get("linethickness")) and fence == "(" and end:
        top, bottom = _arguments(inner[0], depth, 2)
        return end - index + 1, rf"\binom{{{top}}}{{{bottom}}}"
    tables = [child for child in inner if child.tag == "mtable"]
    if end is None:
        if fence == "{" and len(inner) >= 1 and inner[0].tag == "mtable":
            return 2, _table(inner[0], depth, "cases")
        return None
    closing = _fence(children[end]) or ""
    environment = MATRIX.get(fence + closing)
    if len(inner) == 1 and tables and environment and not stretched:
        return end - index + 1, _table(inner[0], depth, environment)
    tall = stretched or (children[index].get("stretchy") is None and any(_is_tall(child) for child in inner))
    before, after = (r"\left", r"\right") if tall else ("", "")
    parts = [before + FENCES[fence], _row(inner, depth + 1), after + FENCES[closing]]
    return end - index + 1, joined(parts)


def _fence(element: Any) -> str | None:
    """The character of a fence; None for another element, and for one of a given size."""
    if element.tag != "mo" or (element.get("minsize") in SIZES and element.get("stretchy") == "true"):
        return None
    text = _text(element)
    return text if text in FENCES else None


def _closing_fences(children: Sequence[Any]) -> dict[int, int]:
    """Index of an opening fence -> that of the one that closes it. Fences that stretch and others are apart."""
    closing: dict[int, int] = {}
    opened: dict[str | None, list[int]] = {}
    bars: dict[tuple[str, str | None], int] = {}
    for at, child in enumerate(children):
        fence, stretchy = _fence(child), child.get("stretchy")
        if fence is None:
            continue
        if fence in OPENING:
            opened.setdefault(stretchy, []).append(at)
        elif fence in CLOSING:
            if of_this_kind := opened.get(stretchy):
                closing[of_this_kind.pop()] = at
        elif (fence, stretchy) in bars:
            closing[bars.pop((fence, stretchy))] = at
        elif child.get("form") != "postfix":
            bars[fence, stretchy] = at
    return closing


def _is_tall(element: Any) -> bool:
    return any(child.tag in TALL for child in element.iter())


def _is_zero(length: str | None) -> bool:
    return length is not None and re.fullmatch(r"0+(?:\.0+)?(?:[a-z]{2}|%)?", length.strip()) is not None


def _identifier(element: Any, depth: int) -> str:
    text = _text(element)
    variant = element.get("mathvariant")
    if text in symbols.FUNCTIONS and variant in (None, "normal"):
        return symbols.FUNCTIONS[text]
    if variant in VARIANTS and text.isalnum() and (text.isascii() or variant != "normal"):  # upright are Δ and ħ anyway
        return f"{VARIANTS[variant]}{{{joined([symbol(character) for character in text])}}}"
    if len(text) > 1 and text.isalpha() and text.isascii():
        return rf"\operatorname{{{text}}}"
    return joined([symbol(character) for character in text])


def _number(element: Any, depth: int) -> str:
    text = _text(element)
    latex = joined([symbol(character) for character in text])
    variant = element.get("mathvariant")
    return f"{VARIANTS[variant]}{{{latex}}}" if variant in VARIANTS and variant != "normal" else latex


def _operator(element: Any, depth: int) -> str:
    text = _text(element)
    if text in symbols.FUNCTIONS:
        return symbols.FUNCTIONS[text]
    if text.isalnum() and text.isascii() and not text.isdigit():
        return rf"\operatorname{{{text}}}"
    latex = r"\mid" if text == "∣" else FENCES.get(text) or joined([symbol(character) for character in text])
    latex = joined([SIZES.get(element.get("minsize", ""), ""), latex])
    return f" {latex} " if text in symbols.relations() else latex


def _quoted_text(element: Any, depth: int) -> str:
    text = "".join(element.itertext()).replace("\xa0", " ")
    text = re.sub(r"\s+", " ", text)
    if not text.strip():
        return r"\ " if text else ""
    return rf"\text{{{symbols.escaped(text)}}}"


def _string(element: Any, depth: int) -> str:
    return rf'\text{{"{symbols.escaped(_text(element))}"}}'


def _space(element: Any, depth: int) -> str:
    if element.get("linebreak") == "newline":
        return r"\\"
    match = re.fullmatch(r"(-?\d*\.?\d+)em", element.get("width", "").strip())
    if match is None or float(match[1]) == 0:
        return ""
    width = float(match[1])
    return r"\!" if width < 0 else next((command for limit, command in SPACES if width < limit), r"\qquad")


def _group(element: Any, depth: int) -> str:
    return _row(_children(element), depth)


def _semantics(element: Any, depth: int) -> str:
    return _row(_children(element)[:1], depth)


def _fraction(element: Any, depth: int) -> str:
    top, bottom = _arguments(element, depth, 2)
    if _is_zero(element.get("linethickness")):
        return rf"{{{top} \atop {bottom}}}"
    if element.get("bevelled") == "true":
        return f"{as_base(top)}/{as_base(bottom)}"
    return rf"\frac{{{top}}}{{{bottom}}}"


def _square_root(element: Any, depth: int) -> str:
    return rf"\sqrt{{{_group(element, depth)}}}"


def _root(element: Any, depth: int) -> str:
    radicand, index = _arguments(element, depth, 2)
    return rf"\sqrt[{{{index}}}]{{{radicand}}}" if "]" in index else rf"\sqrt[{index}]{{{radicand}}}"


def _sub(element: Any, depth: int) -> str:
    base, below = _arguments(element, depth, 2)
    return f"{as_base(base)}_{braced(below)}"


def _sup(element: Any, depth: int) -> str:
    base, above = _arguments(element, depth, 2)
    if set(above) == {"'"}:
        return f"{as_base(base)}{above}"
    return f"{as_base(base)}^{braced(above)}"


def _sub_sup(element: Any, depth: int) -> str:
    base, below, above = _arguments(element, depth, 3)
    return f"{as_base(base)}_{braced(below)}^{braced(above)}"


def _under(element: Any, depth: int) -> str:
    base, below = _arguments(element, depth, 2)
    accent = symbols.UNDER.get(_text(_children(element)[1]))
    if accent:
        return f"{accent}{{{base}}}"
    if _takes_limits(element):
        return f"{as_base(base)}_{braced(below)}"
    return rf"\underset{{{below}}}{{{base}}}"


def _over(element: Any, depth: int) -> str:
    base, above = _arguments(element, depth, 2)
    accent = symbols.OVER.get(_text(_children(element)[1]))
    if accent:
        return f"{symbols.WIDE.get(accent, accent) if len(_text(_children(element)[0])) > 1 else accent}{{{base}}}"
    if _takes_limits(element):
        return f"{as_base(base)}^{braced(above)}"
    return rf"\overset{{{above}}}{{{base}}}"


def _under_over(element: Any, depth: int) -> str:
    base, below, above = _arguments(element, depth, 3)
    if _takes_limits(element):
        return f"{as_base(base)}_{braced(below)}^{braced(above)}"
    return rf"\overset{{{above}}}{{\underset{{{below}}}{{{base}}}}}"


def _takes_limits(element: Any) -> bool:
    """Whether scripts of the base are its limits in LaTeX: sums, integrals, max, and what has a brace."""
    base = _children(element)[0]
    while base.tag in ("mrow", "mstyle", "mpadded") and len(_children(base)) == 1:
        [base] = _children(base)
    braced = base.tag in ("munder", "mover") and _text(_children(base)[-1]) in "⏟⏞"
    return braced or (base.tag in ("mo", "mi") and _text(base) in symbols.WITH_LIMITS)


def _multiscripts(element: Any, depth: int) -> str:
    if not (children := _children(element)):
        raise MathmlError("<mmultiscripts> has no base")
    base, *scripts = children
    split = next((at for at, child in enumerate(scripts) if child.tag == "mprescripts"), len(scripts))
    before = _pairs(scripts[split + 1 :], depth)
    return joined([f"{{}}{before}" if before else "", as_base(_latex(base, depth)), _pairs(scripts[:split], depth)])


def _pairs(scripts: Sequence[Any], depth: int) -> str:
    if len(scripts) % 2:
        raise MathmlError(f"<mmultiscripts> has {len(scripts)} scripts, expected pairs")
    latex = ["" if child.tag == "none" else _latex(child, depth) for child in scripts]
    marks = [f"{mark}{braced(text)}" if text else "" for mark, text in zip("_^" * len(latex), latex, strict=False)]
    pairs = ["".join(marks[at : at + 2]) for at in range(0, len(marks), 2)]
    return "{}".join(pairs)


def _mfenced(element: Any, depth: int) -> str:
    opening, closing = element.get("open", "("), element.get("close", ")")
    separators = element.get("separators", ",").replace(" ", "")
    parts: list[str] = []
    for at, child in enumerate(_children(element)):
        if at and separators:
            parts.append(symbol(separators[min(at - 1, len(separators) - 1)]))
        parts.append(_latex(child, depth))
    fences = [FENCES.get(text, symbol(text) if text else ".") for text in (opening, closing)]
    return joined([rf"\left{fences[0]}", *parts, rf"\right{fences[1]}"])


def _enclosed(element: Any, depth: int) -> str:
    inner = _group(element, depth)
    for notation in element.get("notation", "longdiv").split():
        if notation not in ENCLOSED:
            raise MathmlError(f"<menclose notation={notation!r}> has no LaTeX")
        inner = f"{ENCLOSED[notation]}{{{inner}}}"
    return inner


def _phantom(element: Any, depth: int) -> str:
    return rf"\phantom{{{_group(element, depth)}}}"


def _table(element: Any, depth: int, environment: str | None = None) -> str:
    """Rows of cells. An equation's alignment at even columns is `aligned`."""
    rows = [child for child in _children(element) if child.tag in ("mtr", "mlabeledtr")]
    cells = [_children(row)[row.tag == "mlabeledtr" :] for row in rows]
    if environment is None:
        alignments = element.get("columnalign", "").split() or [_alignment(cell) for cell in cells[0]] if cells else []
        environment = "aligned" if alignments[:2] == ["right", "left"] else "matrix"
    lines = r" \\ ".join(" & ".join(_row(_children(cell), depth + 1) for cell in row) for row in cells)
    return rf"\begin{{{environment}}}{lines}\end{{{environment}}}"


def _alignment(cell: Any) -> str:
    """The alignment of a cell: MathML's attribute, or the class that LaTeXML gives it."""
    aligned = re.search(r"\bltx_align_(left|right|center)\b", cell.get("class", ""))
    return cell.get("columnalign", "") or (aligned[1] if aligned else "")


_ELEMENTS: dict[str, Callable[[Any, int], str]] = {
    **dict.fromkeys(("mrow", "mstyle", "mpadded", "math", "merror", "mtd"), _group),
    "semantics": _semantics,
    "maction": _semantics,
    "mi": _identifier,
    "mn": _number,
    "mo": _operator,
    "mtext": _quoted_text,
    "ms": _string,
    "mspace": _space,
    "none": lambda element, depth: "",
    "mfrac": _fraction,
    "msqrt": _square_root,
    "mroot": _root,
    "msub": _sub,
    "msup": _sup,
    "msubsup": _sub_sup,
    "munder": _under,
    "mover": _over,
    "munderover": _under_over,
    "mmultiscripts": _multiscripts,
    "mfenced": _mfenced,
    "menclose": _enclosed,
    "mphantom": _phantom,
    "mtable": _table,
}
