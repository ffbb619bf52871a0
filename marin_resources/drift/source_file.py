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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

PARSER_TRIES = 9
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement that hold statements."""
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


def freeze(files: Mapping[str, bytes]) -> None:
    """From now on these files, by path, have this content for this process: the code that its jobs run, which later
    edits and removals do not change."""
    _FROZEN.update(files)


def is_file(file: str) -> bool:
    """Whether the file exists, or did when it was frozen."""
    return file in _FROZEN or os.path.isfile(file)


def _cached(cache: dict[str, tuple[tuple[int, int], T]], file: str, read: Callable[[bytes], T]) -> T:
    frozen = _FROZEN.get(file)
    if frozen is None:
        stat = os.stat(file)
        state = (stat.st_mtime_ns, stat.st_size)
    else:
        state = OF_FROZEN
    entry = cache.get(file)
    if entry is None or entry[0] != state:
        data = _read(file) if frozen is None else frozen
        entry = cache[file] = (state, read(data))
    return entry[1]


def _read(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read()


def _parse(data: bytes) -> Code:
    tree = _tree(data)
    if tree is None:
        return Code(digest=_digest(data), imports=())
    return Code(digest=_digest("\0".join(_tokens(tree)).encode()), imports=tuple(_imports(tree)))


def _tree(data: bytes) -> ast.Module | None:
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns when the file is imported
            return _syntax_tree(data)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _syntax_tree(data: bytes) -> ast.Module:
    """`ast.parse`, again if another thread has parsed meanwhile.

    Until Python 3.12 threads share the counter of the recursion depth (https://github.com/python/cpython/issues/106905).
    """
    for _ in range(PARSER_TRIES):
        with suppress(SystemError):
            return ast.parse(data)
    return ast.parse(data)


def _tokens(tree: ast.AST) -> list[str]:
    """The tree as a sequence of tokens, the same in every Python version that parses it alike.

    `ast.dump` is not: it names fields that only some versions have, even if they are empty.
    """
    tokens: list[str] = []
    waiting: list[Any] = [tree]
    while waiting:
        item = waiting.pop()
        if item.__class__ is str:
            tokens.append(item)
        elif item.__class__ is list:
            waiting.append(END)
            waiting += [_token(part) for part in reversed(item) if not _is_docstring(part)]
        else:
            tokens.append(item.__class__.__name__)
            waiting.append(END)
            for field in reversed(item._fields):
                value = getattr(item, field, None)
                if (
                    value is not None and value != [] and field != "ctx" and field != "kind"
                ):  # both follow from the rest
                    waiting += (_token(value), field)
    return tokens


def _token(value: Any) -> Any:
    return value if isinstance(value, ast.AST) or value.__class__ is list else repr(value)


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
        for field in ("orelse",) if _is_type_checking(statement) else BLOCKS:
            waiting += getattr(statement, field, [])


def _is_type_checking(statement: Any) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`, whose body is never executed."""
    test = statement.test if isinstance(statement, ast.If) else None
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]


_ONE_AT_A_TIME = threading.Lock()
"""Warning filters are global: two threads that restore them concurrently may leave the wrong ones."""
END = ")"
OF_FROZEN = (-1, -1)
"""The state of a frozen file, in place of its time and its size."""
_FROZEN: dict[str, bytes] = {}
_BYTES: dict[str, tuple[tuple[int, int], str]] = {}
_CODE: dict[str, tuple[tuple[int, int], Code]] = {}
