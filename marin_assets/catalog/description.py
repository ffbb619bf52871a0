"""Description and kinds of a step, as Dagster's catalog shows them before anything is computed.

A stage defines both itself: its module's docstring starts with a title and has the lines "In:" and "Out:", and KINDS in
the module names the libraries or formats that the asset stands for.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from types import ModuleType

from marin_assets.step.step import Step

DEFAULT_KINDS = ("python",)
_HEAD = re.compile(r"(?P<word>In|Out\b[^:]*):\s*(?P<rest>.*)")
_ITEM = re.compile(r" {5}(?P<name>[\w./*<>-]+) {2,}(?P<rest>\S.*)")
_NOT_FOR_THE_CATALOG = re.compile(r"(?:^|\s)(?:Returns?|Raises?) ")


def description_of(step: Step) -> str | None:
    """The step's description as Markdown. Without one, that of its function: the title of its module with its "In:" and
    "Out:", or for other functions the docstring up to "Returns" or "Raises". None without any."""
    if step.description:
        return step.description
    module = inspect.cleandoc(getattr(_module_of(step), "__doc__", None) or "")
    contract = _contract(module)
    if contract:
        return _without_tags("\n\n".join([_paragraphs(module)[0], *_markdown(contract)]))
    return _without_returns(inspect.getdoc(step.fn) or "") or None


def kinds_of(step: Step) -> set[str]:
    """The step's kinds, else those that its function's module names, else "python"."""
    return set(step.kinds or getattr(_module_of(step), "KINDS", ()) or DEFAULT_KINDS)


def stage_of(step: Step) -> str | None:
    """The stage whose function the step runs, a folder of marin_assets/stages; None for another function."""
    folder, _, below = step.fn.__module__.partition(".stages.")
    return below.partition(".")[0] if folder == "marin_assets" and below else None


def _module_of(step: Step) -> ModuleType | None:
    return sys.modules.get(step.fn.__module__)


def _contract(docstring: str) -> list[str]:
    """The lines from "In:" to the end of "Out:", which continue with a space."""
    lines = docstring.split("\n")
    start = next((i for i, line in enumerate(lines) if line.startswith("In:")), len(lines))
    end = start
    while end < len(lines) and (not lines[end] or lines[end].startswith((" ", "In:", "Out"))):
        end += 1
    return lines[start:end]


def _markdown(contract: Sequence[str]) -> list[str]:
    """Blocks of Markdown: a file with its description is an item, a row of data is code. "In:" and "Out:" are plain, as
    the list of assets shows the beginning of a description as it is written."""
    blocks: list[str] = []
    after_blank = False
    for line in contract:
        head, item = _HEAD.fullmatch(line), _ITEM.fullmatch(line)
        if head:
            blocks.append(f"{head['word']}: {head['rest']}".rstrip())
        elif item:
            separator = "\n" if "\n- " in blocks[-1] else "\n\n"
            blocks[-1] += f"{separator}- `{item['name']}`: {item['rest']}"
        elif line and after_blank:
            blocks.append(f"`{line.strip()}`" if line.startswith(" " * 9) else line.strip())
        elif line:
            blocks[-1] += f" {line.strip()}"
        after_blank = not line
    return blocks


def _without_tags(markdown: str) -> str:
    """The text with "<n>" as text, where it is no code."""
    parts = markdown.split("`")
    return "`".join(part if i % 2 else part.replace("<", "&lt;") for i, part in enumerate(parts))


def _without_returns(docstring: str) -> str:
    kept = []
    for paragraph in _paragraphs(docstring):
        returns = _NOT_FOR_THE_CATALOG.search(paragraph)
        kept.append(paragraph[: returns.start()] if returns else paragraph)
        if returns:
            break
    return "\n\n".join(filter(None, kept))


def _paragraphs(text: str) -> list[str]:
    return re.split(r"\n\s*\n", text)
