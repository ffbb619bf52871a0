"""The source of a step's function as a record holds it, to detect later changes by module.

    {"function": "package.module:name",
     "digest": <of all modules>, "modules": {<module>: <digest of its code>}, "files_digest": <of their files' bytes>}

Only code counts, not comments and layout (see source_file). Not detected: imports by a computed name, and files other
than Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from marin_resources.drift.source_file import bytes_digest, read_code
from marin_resources.drift.source_modules import Module, Modules, module_of, name_of_file


def read_source(references: Sequence[str], counts: Callable[[Module], bool]) -> dict[str, Any] | None:
    """The source of the first reference's function, and of the other references, the classes of its config.

    `counts` decides whether a module can affect the output. None if the function has no source file.
    """
    start = _start(references)
    if start is None:
        return None
    key = (*references, counts)
    source = _READ.get(key)
    if source is None or not _is_unchanged(source, start, references[0]):
        source = _READ[key] = _read(start, references, counts)
    return source


def _read(start: Sequence[Module], references: Sequence[str], counts: Callable[[Module], bool]) -> dict[str, Any]:
    closure = Modules(start).closure(counts)
    modules = {module.name: read_code(module.file).digest for module in closure}
    return {
        "function": _function(references[0], start[0]),
        "digest": _digest_of(modules.items()),
        "files_digest": files_digest(closure),
        "modules": modules,
    }


def source_now(
    references: Sequence[str], counts: Callable[[Module], bool], recorded: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The result of `read_source`; `recorded`, its earlier result, if the files have not changed.

    Unchanged files need no parsing: their imports have not changed either.
    """
    start = _start(references)
    if start is not None and _is_unchanged(recorded, start, references[0]):
        return recorded
    return read_source(references, counts)


def _is_unchanged(recorded: Mapping[str, Any], start: Sequence[Module], reference: str) -> bool:
    modules, names = Modules(start), recorded["modules"]
    existing = [module for module in map(modules.find, names) if module is not None]
    return (
        recorded["function"] == _function(reference, start[0])
        and modules.start.keys() <= names.keys()
        and len(existing) == len(names)
        and recorded["files_digest"] == files_digest(existing)
    )


def _start(references: Sequence[str]) -> list[Module] | None:
    """The modules of the references, the function's first; None if the function has no source file."""
    own, *others = map(module_of, references)
    return None if own is None else [own, *(module for module in others if module is not None)]


def _function(reference: str, module: Module) -> str:
    """The function's name; equal for a module and for the same file started as a script."""
    return f"{name_of_file(module.file)}:{reference.rpartition(':')[2]}"


def files_digest(modules: Iterable[Module]) -> str:
    """SHA-256 over the bytes of the modules' files."""
    return _digest_of((module.name, bytes_digest(module.file)) for module in modules)


def _digest_of(named: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{name} {digest}\n" for name, digest in sorted(named)).encode()).hexdigest()


_READ: dict[tuple[Any, ...], dict[str, Any]] = {}
"""References and `counts` -> their source: many steps have the same function."""
