"""LaTeX as text: parts in a row, arguments and bases of scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence

ENDS_WITH_COMMAND = re.compile(r"\\[a-zA-Z]+$")
ONE_TOKEN = re.compile(r"[^\\{}^_\s]|\\(?:[a-zA-Z]+|[{}|#%&_$,;:! ])")
COMMAND_WITH_ARGUMENT = re.compile(r"\\[a-zA-Z]+\{")
BRACE = re.compile(r"\\.|([{}])", re.DOTALL)
LEFT_OR_RIGHT = re.compile(r"\\(left|right)(?![a-z])(?:\\[a-zA-Z]+|\\.|.)")
SIMPLE_ARGUMENT = re.compile(r"[A-Za-z0-9]")


def joined(parts: Sequence[str]) -> str:
    """LaTeX in a row. A space ends a command where a letter follows."""
    text: list[str] = []
    for part in filter(None, parts):
        if part[0].isalpha() and text and ENDS_WITH_COMMAND.search(text[-1]):
            text.append(" ")
        text.append(part)
    return "".join(text)


def braced(latex: str) -> str:
    """An argument: one letter or digit as it is, all else in braces."""
    latex = latex.strip()
    return latex if SIMPLE_ARGUMENT.fullmatch(latex) else f"{{{latex}}}"


def as_base(latex: str) -> str:
    latex = latex.strip()
    alone = ONE_TOKEN.fullmatch(latex) or _is_fenced(latex) or _is_command(latex)
    return latex if alone else f"{{{latex}}}"


def _is_command(latex: str) -> bool:
    """Whether one command with one argument is all, such as \\mathrm{d}."""
    if not COMMAND_WITH_ARGUMENT.match(latex):
        return False
    level = 0
    for match in BRACE.finditer(latex):
        level += {"{": 1, "}": -1, None: 0}[match[1]]
        if level == 0 and match[1]:
            return match.end() == len(latex)
    return False


def _is_fenced(latex: str) -> bool:
    """Whether one \\left … \\right is all."""
    level = 0
    for match in LEFT_OR_RIGHT.finditer(latex):
        level += 1 if match[1] == "left" else -1
        if level == 0:
            return latex.startswith(r"\left") and match.end() == len(latex)
    return False
