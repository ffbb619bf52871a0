"""The source of a step's function as a record holds it, so that a later change of it can be told, by module.

    {"function": "package.module:name",
     "digest": <of all below>, "modules": {<module>: <digest of its code>}, "files_digest": <of the same files' bytes>}

What a module *does* counts, so comments and layout do not (see source_file). Not seen: what is imported by a name that
is computed, and files that are no Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from marin_resources.drift.source_file import bytes_digest, read_code
from marin_resources.drift.source_modules import Module, Modules, module_of, name_of_file


def read_source(references: Sequence[str], counts: Callable[[Module], bool]) -> dict[str, Any] | None:
    """The source of the function that the first reference names, and of classes of its config that the others name.

    `counts` says of a module whether it matters to what is made. None if the function has no source file.
    """
    start = _start(references)
    if start is None:
        return None
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
    """What `read_source` gives, and `recorded` itself, which is what it gave then, if its files are as they were.

    That takes no parsing: if no file has changed, what they import has not changed either.
    """
    start = _start(references)
    if start is not None and _is_unchanged(recorded, start, references[0]):
        return recorded
    return read_source(references, counts)


def _is_unchanged(recorded: Mapping[str, Any], start: Sequence[Module], reference: str) -> bool:
    modules, names = Modules(start), recorded["modules"]
    found = [module for module in map(modules.find, names) if module is not None]
    return (
        recorded["function"] == _function(reference, start[0])
        and modules.start.keys() <= names.keys()
        and len(found) == len(names)
        and recorded["files_digest"] == files_digest(found)
    )


def _start(references: Sequence[str]) -> list[Module] | None:
    """The modules that the references name, the function's first."""
    own, *others = map(module_of, references)
    return None if own is None else [own, *(module for module in others if module is not None)]


def _function(reference: str, module: Module) -> str:
    """The same for a function of a module and of the same file started as a script."""
    return f"{name_of_file(module.file)}:{reference.rpartition(':')[2]}"


def files_digest(modules: Iterable[Module]) -> str:
    """The digest of the modules' files as they are, whatever they do."""
    return _digest_of((module.name, bytes_digest(module.file)) for module in modules)


def _digest_of(named: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{name} {digest}\n" for name, digest in sorted(named)).encode()).hexdigest()
