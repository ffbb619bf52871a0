"""MathML as one line of text: its TeX if it carries that, else a linear form such as (a+b)/c or x^2."""

from __future__ import annotations

import html
import re

ALTERNATIVE = re.compile(r"""\balttext\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
ANNOTATION = re.compile(
    r"""<annotation\b[^<>]*encoding\s*=\s*["']?(?:application/x-tex|TeX|LaTeX|text/x-latex)\b[^<>]*>([^<]*)<""",
    re.IGNORECASE,
)
DISPLAY_STYLE = re.compile(r"\{\\(?:display|text)style\s?(.*)\}", re.DOTALL)
"""The command that MediaWiki puts around each formula."""
TOKEN = re.compile(r"<(/?)(?:\w+:)?([\w-]+)[^<>]*?(/?)>|<[^<>]*>|([^<]+|<)")
SCRIPTS = {"msup": "^", "mover": "^", "msub": "_", "munder": "_", "msubsup": "_^", "munderover": "_^"}
HIDDEN = ("annotation", "annotation-xml")
ATOM = re.compile(r"\w*|.", re.DOTALL)


def math_text(attributes: str, content: str) -> str:
    """Return a <math> element as text: `$…$` or `$$…$$` around TeX, without TeX a linear form."""
    annotation = ANNOTATION.search(content)
    alternative = ALTERNATIVE.search(attributes)
    tex = annotation[1] if annotation else (alternative[1] or alternative[2] or "") if alternative else ""
    tex = " ".join(html.unescape(tex).split())
    if whole := DISPLAY_STYLE.fullmatch(tex):
        tex = whole[1].strip()
    if tex and (annotation or "\\" in tex):
        dollars = "$$" if re.search(r"""display\s*=\s*["']?block""", attributes, re.IGNORECASE) else "$"
        return f"{dollars}{tex}{dollars}"
    return " ".join((tex or linear(content)).split())


def linear(content: str) -> str:
    """Return presentation MathML in one line."""
    stack: list[tuple[str, list[str]]] = [("math", [])]
    for match in TOKEN.finditer(content):
        closes, name, empty, text = match.groups()
        if text is not None:
            if text.strip():
                stack[-1][1].append(html.unescape(text).strip())
        elif name and not closes and not empty:
            stack.append((name.lower(), []))
        elif name and closes and len(stack) > 1 and stack[-1][0] == name.lower():
            element, parts = stack.pop()
            stack[-1][1].append(combined(element, parts))
    while len(stack) > 1:
        element, parts = stack.pop()
        stack[-1][1].append(combined(element, parts))
    return "".join(stack[0][1])


def combined(name: str, parts: list[str]) -> str:
    """Return an element of MathML by the text of its children."""
    if name in HIDDEN:
        return ""
    if name == "mfrac" and len(parts) == 2:
        return f"{grouped(parts[0])}/{grouped(parts[1])}"
    if name in SCRIPTS and len(parts) == 1 + len(SCRIPTS[name]):
        return parts[0] + "".join(s + grouped(p) for s, p in zip(SCRIPTS[name], parts[1:], strict=True))
    if name == "msqrt":
        return f"sqrt({''.join(parts)})"
    if name == "mroot" and len(parts) == 2:
        return f"root({parts[0]}, {parts[1]})"
    if name == "mtr":
        return ", ".join(parts)
    if name == "mtable":
        return f"[{'; '.join(parts)}]"
    return "".join(parts)


def grouped(text: str) -> str:
    """Return text in parentheses, unless it is one name, number or character."""
    return text if ATOM.fullmatch(text) else f"({text})"
