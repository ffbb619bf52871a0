"""Characters of formulas as LaTeX, by the table of Docutils (`docutils.utils.math.tex2unichar`, by Günter Milde)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache

NAMES = (
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max "
    "min Pr sec sin sinh sup tan tanh"
)
FUNCTIONS: Mapping[str, str] = {name: f"\\{name}" for name in NAMES.split()} | {
    "lim inf": r"\liminf",
    "lim sup": r"\limsup",
}
"""Names that LaTeX sets upright, with the space of an operator."""
WITH_LIMITS = frozenset("∑∏∐∫∬∭∮∯∰⋂⋃⋀⋁⨀⨁⨂⨄⨆") | {"lim", "lim inf", "lim sup", "liminf", "limsup", "max", "min"} | {
    "sup", "inf", "det", "gcd", "Pr",
}  # fmt: skip
OVER: Mapping[str, str] = {
    **dict.fromkeys(("^", "ˆ", "\u0302"), r"\hat"),
    **dict.fromkeys(("¯", "\u0304", "ˉ"), r"\bar"),
    **dict.fromkeys(("‾", "―", "\u0305", "_"), r"\overline"),
    **dict.fromkeys(("~", "˜", "\u0303", "∼"), r"\tilde"),
    **dict.fromkeys(("→", "\u20d7", "⇀"), r"\vec"),
    **dict.fromkeys((".", "˙", "\u0307"), r"\dot"),
    **dict.fromkeys(("..", "¨", "\u0308"), r"\ddot"),
    **dict.fromkeys(("...", "⃛"), r"\dddot"),
    **dict.fromkeys(("´", "\u0301"), r"\acute"),
    **dict.fromkeys(("`", "\u0300"), r"\grave"),
    **dict.fromkeys(("˘", "\u0306"), r"\breve"),
    **dict.fromkeys(("ˇ", "\u030c"), r"\check"),
    **dict.fromkeys(("˚", "\u030a"), r"\mathring"),
    "⏞": r"\overbrace",
    "←": r"\overleftarrow",
    "↔": r"\overleftrightarrow",
}
"""A character above its base -> the accent."""
WIDE: Mapping[str, str] = {
    r"\hat": r"\widehat",
    r"\bar": r"\overline",
    r"\tilde": r"\widetilde",
    r"\vec": r"\overrightarrow",
}
"""An accent -> the one of a base of several characters."""
UNDER: Mapping[str, str] = {
    **dict.fromkeys(("_", "¯", "‾", "―", "\u0332"), r"\underline"),
    "⏟": r"\underbrace",
    "→": r"\underrightarrow",
    "←": r"\underleftarrow",
}
SPECIAL: Mapping[str, str] = {
    **dict.fromkeys("\u2061\u2062\u2063\u2064\u200b\u2060\ufeff", ""),  # applied functions, invisible products
    **dict.fromkeys("−‐‑", "-"),
    **dict.fromkeys("′\u02b9", "'"),
    "″": "''",
    "‴": "'''",
    "\xa0": r"\ ",
    "∗": "*",
    "∕": "/",
    "·": r"\cdot",
    "…": r"\ldots",
    "\\": r"\backslash",
    "^": r"\hat{}",
    "~": r"\sim",
    "`": r"\grave{}",
    "ℏ": r"\hbar",
    "∅": r"\emptyset",
    "ϕ": r"\phi",
    "φ": r"\varphi",
    "ϵ": r"\epsilon",
    "ε": r"\varepsilon",
    **{character: f"\\{character}" for character in "{}#%&_$"},
}
STYLES = (
    ("DOUBLE-STRUCK", r"\mathbb"),
    ("FRAKTUR", r"\mathfrak"),
    ("BLACK-LETTER", r"\mathfrak"),
    ("SCRIPT", r"\mathcal"),
    ("SANS-SERIF", r"\mathsf"),
    ("MONOSPACE", r"\mathtt"),
    ("BOLD", r"\mathbf"),
    ("ITALIC", ""),
)
VARIANTS = {
    "normal": r"\mathrm",
    "bold": r"\mathbf",
    "italic": r"\mathit",
    "bold-italic": r"\boldsymbol",
    "double-struck": r"\mathbb",
    "script": r"\mathcal",
    "bold-script": r"\mathcal",
    "fraktur": r"\mathfrak",
    "bold-fraktur": r"\mathfrak",
    "sans-serif": r"\mathsf",
    "monospace": r"\mathtt",
}
"""Values of mathvariant -> the command of the style."""
ESCAPED = {character: f"\\{character}" for character in "{}#%&_$"}
IN_TEXT = {**ESCAPED, "\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}"}


def symbol(character: str) -> str:
    """Return a character of a formula as LaTeX: itself, or a command. What has no command stays as it is."""
    if character in SPECIAL:
        return SPECIAL[character]
    if character.isascii():
        return character
    return _commands().get(character) or _styled(character) or character


def escaped(text: str) -> str:
    """Return text for \\text{…}."""
    return "".join(IN_TEXT.get(character, character) for character in text)


def _styled(character: str) -> str:
    """A letter of a style of its own, such as 𝐱 (mathematical bold small x), as \\mathbf{x}; "" for another."""
    plain = unicodedata.normalize("NFKC", character)
    name = unicodedata.name(character, "")
    if len(plain) != 1 or plain == character:
        return ""
    command = next((command for style, command in STYLES if style in name), None)
    if command is None:
        return ""
    return f"{command}{{{symbol(plain)}}}" if command else symbol(plain)


@cache
def relations() -> frozenset[str]:
    """Characters that are relations, which stand between spaces."""
    from docutils.utils.math import tex2unichar as tables

    return frozenset(tables.mathrel.values()) | frozenset("=<>:≔") - {":"}


@cache
def _commands() -> Mapping[str, str]:
    """Character -> its command: the one that LaTeX itself or amssymb has, and of these the shortest."""
    from docutils.utils.math import tex2unichar as tables

    named: dict[str, list[str]] = {}
    kinds = ("mathalpha", "mathord", "mathbin", "mathrel", "mathop", "mathopen", "mathclose", "mathpunct", "mathfence")
    for kind in kinds:
        for name, character in getattr(tables, kind, {}).items():
            if re.fullmatch(r"[a-zA-Z]+", name):
                named.setdefault(character, []).append(name)
    return {character: "\\" + min(names, key=lambda name: (len(name), name)) for character, names in named.items()}
