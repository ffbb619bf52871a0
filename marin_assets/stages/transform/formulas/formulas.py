"""Rewrite the formulas of an HTML page to text, as TeX between dollars, before its text is extracted.

The forms are those that OpenWebMath counts on the web (Paster et al. 2023, arXiv:2310.06786): MathML with and without
TeX, scripts and delimiters of MathJax and KaTeX, as the page declares them, AsciiMath, images of WordPress, CodeCogs,
mathTeX and mimeTeX, and the marks of forums. What MathJax, KaTeX and MediaWiki render beside the source of a formula is
cut.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping
from urllib.parse import unquote_plus

from marin_assets.documents.xml.math_text import math_text
from marin_assets.stages.transform.formulas.asciimath import AsciiMathError, asciimath_to_latex
from marin_assets.stages.transform.formulas.fields import RULES
from marin_assets.stages.transform.formulas.mathml import MathmlError, mathml_to_latex
from marin_assets.stages.transform.formulas.page_config import Marks, declared_delimiters, loads_asciimath
from marin_assets.stages.transform.html.html_marks import ATTRIBUTES

MAY_HAVE_FORMULAS = re.compile(
    r"<(?:\w{1,20}:)?math\b|math/tex|katex|mathjax|asciimath|latex|mathtex\.cgi|mimetex\.cgi|\[i?tex\]|\[math\]|cht=tx",
    re.IGNORECASE,
)
LOADS_MATHJAX = re.compile(r"mathjax|katex|class\s*=\s*[\"']?math\b", re.IGNORECASE)
TOKEN = re.compile(rf"<!--.*?(?:-->|\Z)|<(/?)([a-zA-Z][\w:-]*+)({ATTRIBUTES})>?|[^<]++|<", re.DOTALL)
RAW = frozenset({"pre", "code", "textarea", "style", "title", "script"})
"""Elements whose text is no prose: delimiters in it are left alone."""
DELIMITERS = {"\\(": ("\\)", "$"), "\\[": ("\\]", "$$")}
FORUM_MARKS = {f"[{name}]": (f"[/{name}]", "$") for name in ("itex", "latex", "math")} | {"[tex]": ("[/tex]", "$$")}
DOUBLE_DOLLARS = {"$$": ("$$", "$$")}
ASCIIMATH_MARKS = {"`": ("`", "$")}
HIDING = r"\\.|[{}]"
"""Parts that may hide the closing delimiter of a formula: an escaped character, and braces."""
SCRIPT_TYPE = re.compile(r"""\btype\s*=\s*["']?math/tex\b([^"'>]*)""", re.IGNORECASE)
CLASS = re.compile(r"""\bclass\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", re.IGNORECASE)
ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
SOURCE = re.compile(r"""\bsrc\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", re.IGNORECASE)
DISPLAY = re.compile(r"""\b(?:display|mode)\s*=\s*["']?(?:block|display)""", re.IGNORECASE)
TEX_IN_URL = re.compile(
    r"latex\.php\?(?:[^#]*&)?latex=([^&#]+)|(?:codecogs\.com/[^?#]*|(?:math|mime)tex\.cgi)\?(.+)|[?&]cht=tx&(?:[^#]*&)?chl=([^&#]+)",
    re.IGNORECASE | re.DOTALL,
)
LOOKS = re.compile(r"\\(?:inline|displaystyle|large|Large|small|tiny|bg_\w+|fn_\w+|dpi\{\d+\})(?![a-zA-Z])\s*")
"""Commands of CodeCogs for the look of its image."""
RENDERED = frozenset(
    ["katex-html", "MathJax_Preview", "MathJax_SVG", "MathJax_SVG_Display", "MathJax_CHTML", "mjx-chtml"]
)
RENDERED_BESIDE_SCRIPTS = frozenset({"MathJax", "MathJax_Display", "MJXc-display"})
FALLBACK_IMAGE = "mwe-math-fallback-image"


def with_formulas(page: str, counts: Counter[str], rules: str = RULES[0]) -> str:
    """Return the page with its formulas as text, and add to COUNTS. Takes linear time."""
    if not MAY_HAVE_FORMULAS.search(page):
        return page
    return _Page(page, counts, rules).rewritten()


class _Page:
    """One pass over the tags and texts of a page."""

    def __init__(self, page: str, counts: Counter[str], rules: str) -> None:
        self.page, self.counts = page, counts
        self.has_scripts = SCRIPT_TYPE.search(page) is not None
        self.has_braces = rules != "formulas-1"
        """Whether a closing delimiter counts only outside of braces, and if it is not escaped."""
        self.marks: Mapping[str, tuple[str, str]] = _marks_of(page, rules)
        endings = {closing for closing, _ in self.marks.values()}
        self.pieces = {closing: re.compile(f"{re.escape(closing)}|{HIDING}", re.DOTALL) for closing in endings}
        longest_first = sorted(self.marks, key=lambda mark: (-len(mark), mark))
        self.opens = re.compile((r"\\\$|" if self.has_braces else "") + "|".join(map(re.escape, longest_first)))
        self.ends: dict[str, list[int]] = {}
        self.closed: dict[str, bool] = {}
        """Closing tag -> whether one is still to come: searched once, so a million open ones take linear time."""

    def rewritten(self) -> str:
        parts: list[str] = []
        position, raw = 0, Counter[str]()
        after_mathjax = False
        while match := TOKEN.match(self.page, position):
            position, token = match.end(), match[0]
            closes, name, attributes = match[1], (match[2] or "").lower().rpartition(":")[2], match[3] or ""
            if match[2] is None:
                parts.append(token if raw or token.startswith("<") else self.text(token))
                continue
            if not closes and name in ("math", "script"):
                formula, position = self.source(name, attributes, position)
                parts.append(token if formula is None else formula)
                if formula is None and name == "script":
                    raw[name] += 1
            elif not closes and name == "img":
                parts.append(self.image(token, attributes))
            elif not closes and (self.is_rendered(attributes) or (name == "nobr" and after_mathjax)):
                position = self.after(name, position)
                self.counts["formulas_rendered"] += 1
            else:
                parts.append(token)
                if name in RAW:
                    raw[name] += -1 if closes else 1
                    raw = +raw
            after_mathjax = not closes and "MathJax" in attributes
        return "".join(parts)

    def source(self, name: str, attributes: str, start: int) -> tuple[str | None, int]:
        """A <math> or a script of TeX as text, and the position after it; None for another script."""
        kind = SCRIPT_TYPE.search(attributes) if name == "script" else None
        if name == "script" and kind is None:
            return None, start
        end = self.end_of(name, start)
        if end is None:
            return None, start
        content, after = self.page[start : end.start()], end.end()
        if kind is not None:
            tex = re.sub(r"^\s*(?:%\s*)?<!\[CDATA\[|(?:%\s*)?\]\]>\s*$", "", content)
            return self.formula(
                html.escape(tex, quote=False), "$$" if DISPLAY.search(kind[1]) else "$", "script"
            ), after
        return self.mathml(attributes, content), after

    def mathml(self, attributes: str, content: str) -> str:
        text = math_text(attributes, content)
        if text.startswith("$"):
            self._count("mathml_tex")
            return html.escape(text, quote=False)
        try:
            latex = mathml_to_latex(content)
        except MathmlError:
            self.counts["formulas_linear"] += 1
            return html.escape(text, quote=False)
        return self.formula(html.escape(latex, quote=False), "$$" if DISPLAY.search(attributes) else "$", "mathml")

    def text(self, text: str) -> str:
        """Text of the page, with the delimiters of its formulas as dollars."""
        parts: list[str] = []
        done = 0
        for match in self.opens.finditer(text):
            if match.start() < done or match[0] not in self.marks:  # \$ is in none: it is a dollar of the text
                continue
            closing, dollars = self.marks[match[0]]
            end = self.closing(text, closing, match.end())
            if end < 0:
                self.counts["formulas_unclosed"] += 1
                break  # in this text alone: a formula has no tags in it
            content = text[match.end() : end]
            parts += [text[done : match.start()], self.delimited(match[0], content, dollars)]
            done = end + len(closing)
        return "".join([*parts, text[done:]])

    def delimited(self, opening: str, content: str, dollars: str) -> str:
        if opening in FORUM_MARKS:
            return self.formula(content, dollars, "forum")
        if opening == dollars and content.strip():  # as it is: of a page that writes prices too, nothing changes
            self._count("delimiters")
            return f"{dollars}{content}{dollars}"
        if opening not in ASCIIMATH_MARKS:
            return self.formula(content, dollars, "delimiters")
        try:
            latex = asciimath_to_latex(html.unescape(content))
        except AsciiMathError:
            self.counts["formulas_linear"] += 1
            return content
        return self.formula(html.escape(latex, quote=False), dollars, "asciimath")

    def closing(self, text: str, closing: str, start: int) -> int:
        """The place of the closing delimiter; -1 without one."""
        if not self.has_braces or closing == "`":
            return text.find(closing, start)
        level = 0
        for piece in self.pieces[closing].finditer(text, start):
            if piece[0] == closing and level <= 0:
                return piece.start()
            level += {"{": 1, "}": -1}.get(piece[0], 0)
        return -1

    def image(self, token: str, attributes: str) -> str:
        """An image of a formula as its TeX; any other as it is."""
        classes, source = _value(CLASS, attributes), html.unescape(_value(SOURCE, attributes))
        if FALLBACK_IMAGE in classes:
            self.counts["formulas_rendered"] += 1
            return ""
        url = TEX_IN_URL.search(source)
        tex = html.unescape(_value(ALT, attributes)) if "latex" in classes.lower().split() else ""
        if url and not tex:
            tex = unquote_plus(next(filter(None, url.groups())))
        tex = LOOKS.sub("", tex).strip().strip("$").strip()
        return self.formula(html.escape(tex, quote=False), "$", "image") if tex else token

    def formula(self, escaped_tex: str, dollars: str, form: str) -> str:
        tex = " ".join(escaped_tex.split())
        if not tex:
            return ""
        self._count(form)
        return f"{dollars}{tex}{dollars}"

    def _count(self, form: str) -> None:
        self.counts["formulas"] += 1
        self.counts[f"formulas_{form}"] += 1

    def is_rendered(self, attributes: str) -> bool:
        """Whether an element repeats a formula whose source the page has too."""
        if "class" not in attributes.lower():
            return False
        classes = set(_value(CLASS, attributes).split())
        return bool(classes & RENDERED or (self.has_scripts and classes & RENDERED_BESIDE_SCRIPTS))

    def end_of(self, name: str, start: int) -> re.Match[str] | None:
        """The next closing tag, also one with a prefix of a namespace."""
        if not self.closed.get(name, True):
            return None
        end = re.compile(rf"</(?:\w{{1,20}}:)?{name}\s*>", re.IGNORECASE).search(self.page, start)
        self.closed[name] = end is not None
        return end

    def after(self, name: str, start: int) -> int:
        """The position after an element that is cut, with those of its name inside it; the start if it is open."""
        if not self.closed.get(f"cut {name}", True):
            return start
        level = 1
        for match in re.compile(rf"<(/?){re.escape(name)}(?=[\s/>])[^>]*>", re.IGNORECASE).finditer(self.page, start):
            level += -1 if match[1] else 1
            if level == 0:
                return match.end()
        self.closed[f"cut {name}"] = False
        return start


def _value(attribute: re.Pattern[str], attributes: str) -> str:
    match = attribute.search(attributes)
    return next((group for group in match.groups() if group), "") if match else ""


def _marks_of(page: str, rules: str) -> Marks:
    """The delimiters of formulas on a page."""
    marks: Marks = dict(FORUM_MARKS)
    if LOADS_MATHJAX.search(page):
        marks |= DELIMITERS
        if rules != "formulas-1":
            marks |= DOUBLE_DOLLARS | declared_delimiters(page)
    if rules != "formulas-1" and loads_asciimath(page):
        marks |= ASCIIMATH_MARKS
    return marks
