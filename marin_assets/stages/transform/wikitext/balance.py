"""Wikitext without what a text does not show: comments, references, templates and the tags of HTML.

What is kept as it is, such as formulas and code, waits under a mark. Markup that has no end loses its start: the parser
would try each again from the next place on, in quadratic time. Each pass takes linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

MAX_DEPTH = 12
"""Links and tables within one another. Pages have 3."""
DROPPED = ("references", "gallery", "timeline", "score", "imagemap", "templatedata", "graph", "mapframe", "maplink",
           "hiero", "inputbox", "categorytree", "section", "indicator", "includeonly", "templatestyles",
           "style")  # fmt: skip
FORMULAS = ("math", "chem", "ce")
BLOCKS = ("pre", "syntaxhighlight", "source")
CODE = ("code", "tt", "samp", "kbd")
RAW = ("nowiki", "ref", *FORMULAS, *BLOCKS, *CODE, *DROPPED)
RAW_TAG = re.compile(rf"<!--|<({'|'.join(RAW)})\b([^<>]*?)(/?)>", re.IGNORECASE)
BREAKS = {"br": "\x04", "p": "\n\n", "hr": "\n\n", "blockquote": "\n\n", "li": "\n* ", "tr": "\n", "td": " ", "th": " ",
          "table": "\n\n", "poem": "\n\n"}  # fmt: skip
TAG = re.compile(
    r"</?(abbr|b|bdi|bdo|big|blockquote|br|caption|center|cite|code|data|dd|del|dfn|div|dl|dt|em|font|h[1-6]|hr|i|ins|"
    r"kbd|li|mark|math|noinclude|nowiki|ol|onlyinclude|p|poem|pre|q|rb|ref|references|rp|rt|ruby|s|samp|small|source|span|"
    r"strike|strong|sub|sup|syntaxhighlight|table|tbody|td|th|thead|time|tr|tt|u|ul|var|wbr|chem|ce|gallery|includeonly)"
    r"\b[^<>]*>",
    re.IGNORECASE,
)
CAPTION = re.compile(r"^([ \t:]*\{\|[^\n]*)\n[ \t]*\|\+(?:[^\n|\[\]]*\|)?[ \t]*([^\n]*)$", re.MULTILINE)
"""The name of a table, within it. It becomes a line before the table."""
BRACES = re.compile(r"\{{2,}|\}{2,}")
MARKS = re.compile(r"\[\[|\]\]|^[ \t:]*\{\||^[ \t]*\|\}", re.MULTILINE)
EXTERNAL = re.compile(
    r"""\[(?:https?:|ftp:|mailto:|//)[^\s\[\]<>"]{0,2000}(?:[ \t]{1,9}([^\]\n]{0,1000}))?\]""", re.IGNORECASE
)
BRACKET = re.compile(r"(?<!\[)\[(?!\[)")
"""One that begins no link, such as of a note. The parser would search the end of an external link for it."""
LONG_LIST = re.compile(r"^([*#:;]{12})[*#:;]+", re.MULTILINE)
LANGUAGE = re.compile(r"""\blang\s*=\s*["']?([\w+#-]{1,30})""", re.IGNORECASE)
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
DIGITS = str.maketrans("0123456789", "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19")


@dataclass(kw_only=True)
class Balanced:
    text: str = ""
    kept: list[str] = field(default_factory=list)
    """The text of each mark."""
    templates: list[str] = field(default_factory=list)
    """Names of the outermost templates, in small letters."""


def balanced(wikitext: str, counts: Counter[str]) -> Balanced:
    """Return the text, and add to counts templates, references, formulas, others and tables_dropped (of HTML)."""
    result = Balanced()
    text = CONTROLS.sub("", wikitext.replace("\r\n", "\n").replace("\r", "\n"))
    text = _without_raw(text, result, counts).replace("{{!}}", "|")
    text = CAPTION.sub(r"\2\n\1", _without_templates(text, result, counts))
    text = TAG.sub(lambda match: _break(match, counts), text)
    text = re.sub(r"<(?=[a-zA-Z/])", "&lt;", text)
    text = LONG_LIST.sub(r"\1", EXTERNAL.sub(lambda match: match[1] or "", text))
    result.text = BRACKET.sub("\x07", _without_open_marks(text))
    return result


def restored(text: str, kept: list[str]) -> str:
    """Return a text with what its marks stand for."""
    undo = {value: key for key, value in DIGITS.items()}
    text = text.replace("\x07", "[")
    return re.sub("\x02([\x10-\x19]+)\x03", lambda match: kept[int(match[1].translate(undo))], text)


def _mark(result: Balanced, text: str) -> str:
    result.kept.append(text)
    return f"\x02{str(len(result.kept) - 1).translate(DIGITS)}\x03"


def _without_raw(text: str, result: Balanced, counts: Counter[str]) -> str:
    """Leave out comments and references, and put a mark in place of formulas, code and nowiki."""
    lowered = text.lower() if len(text.lower()) == len(text) else text
    last = {name: lowered.rfind(f"</{name}") for name in RAW}
    last_comment = text.rfind("-->")
    parts, done = [], 0
    while match := RAW_TAG.search(text, done):
        parts.append(text[done : match.start()])
        done = match.end()
        if match[1] is None:
            done = text.index("-->", done) + 3 if last_comment >= done else len(text)
            continue
        name = match[1].lower()
        content = ""
        if not match[3]:
            if last[name] < done:
                continue  # it has no end
            end = lowered.index(f"</{name}", done)
            content, closing = text[done:end], text.find(">", end)
            done = closing + 1 if closing >= 0 else len(text)
        parts.append(_shown(name, match[2], content, result, counts))
    return "".join([*parts, text[done:]])


def _shown(name: str, attributes: str, content: str, result: Balanced, counts: Counter[str]) -> str:
    if name == "ref":
        counts["references"] += 1
        return ""
    if name in DROPPED:
        counts["others"] += name not in ("references", "section", "includeonly", "templatestyles")
        return ""
    if not content.strip():
        return ""
    if name in FORMULAS:
        counts["formulas"] += 1
        tex = " ".join(content.split())
        return _mark(result, f"${tex}$" if name == "math" else f"$\\ce{{{tex}}}$")
    if name in BLOCKS:
        language = LANGUAGE.search(attributes)
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", content)), default=0))
        opening = f"{fence}{language[1]}" if language else fence
        block = _mark(result, "\n".join((opening, content.strip("\n"), fence)))
        return f"\n\n{block}\n\n"
    if name in CODE:
        plain = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|'{2,3}|<[^<>]*>|\{\{|\}\}", r"\1", content)
        code = " ".join(plain.split())
        return _mark(result, f"`{code}`") if code else ""
    return _mark(result, content)


def _without_templates(text: str, result: Balanced, counts: Counter[str]) -> str:
    """Leave out templates, arguments, and braces that have no other end."""
    open_runs: list[list[int]] = []  # start and number of braces
    removed: list[tuple[int, int]] = []
    for match in BRACES.finditer(text):
        start, size = match.start(), len(match[0])
        if text[start] == "{":
            open_runs.append([start, size])
            continue
        while size >= 2 and open_runs:
            run = open_runs[-1]
            used = min(3, size, run[1])
            begin, start, size = run[0] + run[1] - used, start + used, size - used
            counts["templates"] += used == 2
            while removed and removed[-1][0] >= begin:
                removed.pop()
            removed.append((begin, start))
            run[1] -= used
            if run[1] < 2:
                removed[-1] = run[0], start
                open_runs.pop()
        if size >= 2:
            removed.append((start, start + size))
    removed += [(start, start + size) for start, size in open_runs]
    parts, done = [], 0
    for start, end in sorted(removed):
        if end <= done:
            continue
        parts.append(text[done : max(start, done)])
        if text.startswith("{{", start):
            result.templates.append(re.split(r"[|}\n<]", text[start + 2 : min(end, start + 100)])[0].strip().lower())
        done = end
    return "".join([*parts, text[done:]])


def _break(match: re.Match[str], counts: Counter[str]) -> str:
    name = match[1].lower()
    counts["tables_dropped"] += name == "table" and not match[0].startswith("</")
    if match[0].startswith("</") and name == "li":
        return ""
    return BREAKS.get(name, "")


def _without_open_marks(text: str) -> str:
    """Leave out marks of links and tables that have no other end, or are within too many; of a table its line too."""
    stack: list[re.Match[str]] = []
    removed: list[re.Match[str]] = []
    for match in MARKS.finditer(text):
        mark = match[0].strip(" \t:")
        if mark in ("[[", "{|"):
            if len(stack) >= MAX_DEPTH:
                removed.append(match)
            else:
                stack.append(match)
            continue
        opening = "[[" if mark == "]]" else "{|"
        while stack and mark == "|}" and stack[-1][0] == "[[":
            removed.append(stack.pop())
        if stack and stack[-1][0].strip(" \t:") == opening:
            stack.pop()
        else:
            removed.append(match)
    parts, done = [], 0
    for match in sorted([*removed, *stack], key=lambda match: match.start()):
        if match.start() < done:
            continue
        parts.append(text[done : match.start()])
        line_end = text.find("\n", match.end()) if match[0].endswith("{|") else match.end()
        done = line_end if line_end >= 0 else len(text)
    return "".join([*parts, text[done:]])
