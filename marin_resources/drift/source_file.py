"""One Python file for drift: a digest of its bytes, a digest of its code, and its imports.

Comments, blank lines, line breaks and docstrings do not change the computation, so the digest of the code is of the
syntax tree without them. Parsing takes milliseconds and reading bytes microseconds, hence both digests: a file with the
same bytes is not parsed. Both are cached until the file's time or size changes.
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
"""Hex digits of a module's digest: enough to detect an edit, not to withstand an attack."""


@dataclass(frozen=True, kw_only=True)
class Import:
    """One import statement: `from ..module import a, b` has level 2, `import a, b` is two of level 0."""

    level: int
    module: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Code:
    """The code of a file without its layout."""

    digest: str
    imports: tuple[Import, ...]


def bytes_digest(file: str) -> str:
    """The digest of the file's bytes. Raises FileNotFoundError."""
    return _cached(_BYTES, file, _digest)


def read_code(file: str) -> Code:
    """The digest of the file's code, and its imports. Raises FileNotFoundError.

    A file that does not parse, for example during an edit, has the digest of its bytes and no imports.
    """
    return _cached(_CODE, file, _parse)


def _cached(known: dict[str, tuple[tuple[int, int], T]], file: str, read: Callable[[bytes], T]) -> T:
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
            warnings.simplefilter("ignore")  # Python warns when the file is imported
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return Code(digest=_digest(data), imports=())
    return Code(digest=_digest("\0".join(_tokens(tree)).encode()), imports=tuple(_imports(tree)))


def _tokens(tree: ast.AST) -> Iterator[str]:
    """The tree as a sequence of tokens, the same in every Python version that parses it alike.

    `ast.dump` is not: it names fields that only some versions have, even if they are empty.
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
                    waiting += [value, _Token(field)]
        elif isinstance(item, list):
            waiting.append(_END)
            waiting += [part for part in reversed(item) if not _is_docstring(part)]
        else:
            yield item.text if isinstance(item, _Token) else repr(item)


def _is_docstring(part: Any) -> bool:
    """Whether a statement is only a string: a docstring, or the documentation of a field."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def _imports(tree: ast.Module) -> Iterator[Import]:
    """Every import that may be executed, also inside functions."""
    waiting: list[Any] = [tree]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.Import):
            yield from (Import(level=0, module=alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            names = tuple(alias.name for alias in statement.names)
            yield Import(level=statement.level, module=statement.module or "", names=names)
        fields = ("orelse",) if _is_type_checking(statement) else _BLOCKS
        for field in fields:
            waiting += getattr(statement, field, [])


def _is_type_checking(statement: Any) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`, whose body is never executed."""
    test = statement.test if isinstance(statement, ast.If) else None
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]


@dataclass(frozen=True)
class _Token:
    text: str


_ONE_AT_A_TIME = threading.Lock()
"""Warning filters are global: two threads that restore them concurrently may leave the wrong ones."""
_END = _Token(")")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_BYTES: dict[str, tuple[tuple[int, int], str]] = {}
_CODE: dict[str, tuple[tuple[int, int], Code]] = {}
