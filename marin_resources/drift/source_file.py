"""One Python file as drift sees it: a digest of its bytes, a digest of what it does, and what it imports.

Comments, blank lines, line breaks and docstrings change nothing that is computed, so the digest that counts is taken of
the syntax tree without them. Reading a tree takes milliseconds and reading bytes microseconds, hence both digests: a
file of the same bytes needs no tree. Each is kept for as long as the file's time and size stay.
"""

from __future__ import annotations

import ast
import hashlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

DIGITS = 16
"""Of a module's digest. It tells an edit, it does not withstand an attack."""


@dataclass(frozen=True, kw_only=True)
class Import:
    """One import statement: `from ..module import a, b` has level 2, `import a, b` is two of level 0."""

    level: int
    module: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Code:
    """What a file says, its layout aside."""

    digest: str
    imports: tuple[Import, ...]


def bytes_digest(file: str) -> str:
    """The digest of the file as it is. Raises FileNotFoundError."""
    return _kept(_BYTES, file, _digest)


def read_code(file: str) -> Code:
    """The digest of what the file does, and its imports. Raises FileNotFoundError.

    A file that is no Python, as one may be in the middle of an edit, is its bytes and imports nothing.
    """
    return _kept(_CODE, file, _parse)


def _kept(known: dict[str, tuple[tuple[int, int], T]], file: str, read: Callable[[bytes], T]) -> T:
    stat = os.stat(file)
    state = (stat.st_mtime_ns, stat.st_size)
    found = known.get(file)
    if found is None or found[0] != state:
        with open(file, "rb") as opened:
            found = known[file] = (state, read(opened.read()))
    return found[1]


def _parse(data: bytes) -> Code:
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # who imports the file is told what is odd about it
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return Code(digest=_digest(data), imports=())
    return Code(digest=_digest("\0".join(_told(tree)).encode()), imports=tuple(_imports(tree)))


def _told(tree: ast.AST) -> Iterator[str]:
    """The tree as words, the same for every version of Python that reads it alike.

    Not `ast.dump`: that one names fields which only some versions have, also where they are empty.
    """
    waiting: list[Any] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, ast.AST):
            yield type(item).__name__
            waiting.append(_END)
            for field in reversed(item._fields):
                value = getattr(item, field, None)
                if value is not None and value != [] and field not in ("ctx", "kind"):  # both follow from the rest
                    waiting += [value, _Word(field)]
        elif isinstance(item, list):
            waiting.append(_END)
            waiting += [part for part in reversed(item) if not _is_text_alone(part)]
        else:
            yield item.text if isinstance(item, _Word) else repr(item)


def _is_text_alone(part: Any) -> bool:
    """A statement that is a text and nothing else: a docstring, or the words below a field."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def _imports(tree: ast.Module) -> Iterator[Import]:
    """Every import that may be run, in functions too."""
    waiting: list[Any] = [tree]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.Import):
            yield from (Import(level=0, module=alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            names = tuple(alias.name for alias in statement.names)
            yield Import(level=statement.level, module=statement.module or "", names=names)
        fields = ("orelse",) if _is_for_types_alone(statement) else _BLOCKS
        for field in fields:
            waiting += getattr(statement, field, [])


def _is_for_types_alone(statement: Any) -> bool:
    """`if TYPE_CHECKING:`, which is never run."""
    test = statement.test if isinstance(statement, ast.If) else None
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]


@dataclass(frozen=True)
class _Word:
    text: str


_ONE_AT_A_TIME = threading.Lock()
"""Filters of warnings are the whole process's: two threads that both put them back may leave the wrong ones."""
_END = _Word(")")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_BYTES: dict[str, tuple[tuple[int, int], str]] = {}
_CODE: dict[str, tuple[tuple[int, int], Code]] = {}
