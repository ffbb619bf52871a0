"""Make chats and preferences of the standard library's docstrings: questions and answers on every machine.

In:  the sources of the running Python's standard library. They are parsed, never imported.
Out: `chats/rows.jsonl.zst`, of {id, messages}: "What does shutil.rmtree do?" and the first sentence of its docstring;
     `preferences/rows.jsonl.zst`, of {id, prompt, chosen, rejected}: that answer, and the same one which does not stop
     but continues with the answer to another question.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import platform
import re
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marin_assets.documents import write_rows
from marin_assets.stages.download.pydoc import check_python_version, choose, module_names
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("text",)

CHATS, PREFERENCES = "chats", "preferences"
ROWS = "rows.jsonl.zst"
SENTENCE = re.compile(r".+?[a-z)'\"`]\.(?=\s|$)")
ABBREVIATIONS = ("e.g.", "i.e.", "etc.", "vs.", "cf.")
FEWEST_WORDS, MOST_WORDS = 4, 24
"""Limits on the words of an answer. Two of the longest and their question fit into 128 tokens."""

log = logging.getLogger(__name__)


class NoChatsError(MarinError, ValueError):
    """The sources have no docstring that answers a question. The message names their folder."""


@dataclass(frozen=True, kw_only=True)
class DocstringChatsConfig:
    output_path: str = THIS_OUTPUT_PATH
    max_chats: int | None = versioned(None)
    """At most this many, spread evenly over the modules; None for all."""
    python_version: str = field(default_factory=lambda: versioned(platform.python_version()))
    """The documented Python ("3.11.7"): another interpreter produces other rows."""


@dataclass(frozen=True)
class Described:
    """A function, a method or a class, with the first sentence of its docstring."""

    name: str
    is_class: bool
    sentence: str

    @property
    def question(self) -> str:
        return f"What is {self.name}?" if self.is_class else f"What does {self.name} do?"


def docstring_chats(config: DocstringChatsConfig) -> dict[str, int]:
    """Write a chat and a preference for each function and class whose docstring begins with a sentence.

    An answer that several have is left out: it describes none of them. Returns chats, preferences, modules, and
    left_out (docstrings without such a sentence, or with one that another has). Raises PythonVersionError, and
    NoChatsError for an installation without sources.
    """
    check_python_version(config.python_version)
    described = [entry for name in module_names() for entry in described_in(name)]
    times: dict[str, int] = {}
    for entry in described:
        times[entry.sentence] = times.get(entry.sentence, 0) + 1
    unique = [entry for entry in described if is_an_answer(entry.sentence) and times[entry.sentence] == 1]
    if len(unique) < 2:
        raise NoChatsError(
            f"The standard library in {sysconfig.get_path('stdlib')!r} has {len(unique)} docstrings to ask for, "
            "expected at least 2. Run with a Python that is installed with its sources."
        )
    chosen = choose_evenly(unique, config.max_chats)
    others = sorted(chosen, key=lambda entry: hashlib.sha256(entry.name.encode()).digest())
    after = {entry.name: other.sentence for entry, other in zip(others, [*others[1:], others[0]], strict=True)}
    chats = [{"id": entry.name, "messages": _messages(entry.question, entry.sentence)} for entry in chosen]
    preferences = [
        {
            "id": entry.name,
            "prompt": entry.question,
            "chosen": entry.sentence,
            "rejected": f"{entry.sentence} {after[entry.name]}",
        }
        for entry in chosen
    ]
    for kind, rows in ((CHATS, chats), (PREFERENCES, preferences)):
        write_rows(join(config.output_path, kind, ROWS), rows)
    return {
        "chats": len(chats),
        "preferences": len(preferences),
        "modules": len({entry.name.partition(".")[0] for entry in chosen}),
        "left_out": len(described) - len(unique),
    }


def choose_evenly(described: list[Described], limit: int | None) -> list[Described]:
    by_name = {entry.name: entry for entry in described}
    return [by_name[name] for name in choose(list(by_name), limit)]


def described_in(module: str) -> Iterator[Described]:
    """Yield what a module of the standard library documents under a public name; nothing for one without a source."""
    path = Path(sysconfig.get_path("stdlib"), *module.split("."))
    source = next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)
    if source is None or module.rpartition(".")[2].startswith("_"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the sources' own escapes
        tree = ast.parse(source.read_bytes())
    yield from _described(tree, module)


def _described(scope: ast.AST, prefix: str) -> Iterator[Described]:
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        name = f"{prefix}.{node.name}"
        if docstring := ast.get_docstring(node):
            yield Described(name, isinstance(node, ast.ClassDef), first_sentence(docstring))
        if isinstance(node, ast.ClassDef):
            yield from _described(node, name)


def first_sentence(docstring: str) -> str:
    """The first sentence of the first paragraph, on one line; "" if none exists."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    match = SENTENCE.match(paragraph)
    return match[0] if match else ""


def is_an_answer(sentence: str) -> bool:
    words = sentence.split()
    return (
        FEWEST_WORDS <= len(words) <= MOST_WORDS
        and sentence[0].isupper()
        and sentence.isascii()
        and not sentence.endswith(ABBREVIATIONS)
        and "(" not in words[0]  # the signature of a function in C
    )


def _messages(question: str, answer: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
