"""Check that the code in a node's image is the submitter's, as the record will claim.

In:  the digests of the modules that the step's function uses, computed by the submitter (`drift/source_digest.py`).
Out: nothing if the modules that this process would import are the same; else SourceMismatchError.

Imports none of the modules, and parses them only if the files differ in a byte.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from marin_resources.drift.source_digest import files_digest
from marin_resources.drift.source_file import read_code
from marin_resources.drift.source_modules import Module, name_of_file
from marin_resources.types.errors import MarinError

MAX_NAMED = 3
DIGITS = 8


class SourceMismatchError(MarinError, ValueError):
    """The code on this node is not the submitter's: one sentence with the modules."""


def check_source(recorded: Mapping[str, Any] | None, references: Sequence[str]) -> None:
    """Raise SourceMismatchError if a module differs or is missing. `references` may name scripts, which are not on the
    import path."""
    if not recorded:
        return
    finder = _Finder(references)
    files = {name: finder.find(name) for name in recorded["modules"]}
    modules = [Module(name=name, file=file) for name, file in files.items() if file]
    if len(modules) == len(files) and files_digest(modules) == recorded.get("files_digest"):
        return
    digests = {name: read_code(file).digest if file else None for name, file in files.items()}
    differing = [name for name, digest in recorded["modules"].items() if digests[name] != digest]
    if differing:
        phrases = [
            _phrase(name, recorded["modules"][name], digests[name], files[name]) for name in differing[:MAX_NAMED]
        ]
        more = f" and {len(differing) - MAX_NAMED} more" if len(differing) > MAX_NAMED else ""
        raise SourceMismatchError(
            f"The code in this node's image is not the submitter's: {', '.join(phrases)}{more}. "
            "Submit from the code that is in the image, or set MARIN_CLUSTER_CODE=ship."
        )


def _phrase(name: str, theirs: str, ours: str | None, file: str | None) -> str:
    here = f"is {ours[:DIGITS]} in {file!r} here" if ours else "is missing here"
    return f"{name!r} was {theirs[:DIGITS]} at the submitter and {here}"


class _Finder:
    """Finds modules by name, as this process would import them."""

    def __init__(self, references: Iterable[str]) -> None:
        addresses = {reference.rpartition(":")[0] for reference in references}
        self._scripts = {name_of_file(file): file for file in sorted(addresses) if file.endswith(".py")}
        self._folders = [folder for file in self._scripts.values() for folder in _folders_of(file)]

    def find(self, name: str) -> str | None:
        """Return the module's file, None if it has none."""
        return self._scripts.get(name) or next(self._candidates(name), None)

    def _candidates(self, name: str) -> Iterator[str]:
        top, *inside = name.split(".")
        for folder in self._folders:
            yield from _files_below(folder, [top, *inside])
        spec = _spec_of(top)
        if spec is None:
            return
        if not inside and spec.origin and spec.origin.endswith(".py"):
            yield spec.origin
        for folder in spec.submodule_search_locations or []:
            yield from _files_below(folder, inside)


def _folders_of(script: str) -> list[str]:
    """Return the folders that a script imports from beside the environment: its own, and that above its packages."""
    stem = script.removesuffix(".py").removesuffix("/__init__")
    return [os.path.dirname(script), stem.removesuffix("/" + name_of_file(script).replace(".", "/"))]


def _files_below(folder: str, parts: Sequence[str]) -> Iterator[str]:
    if parts:
        path = os.path.join(folder, *parts)
        yield from (file for file in (f"{path}/__init__.py", f"{path}.py") if os.path.isfile(file))


def _spec_of(top: str) -> Any:
    """Return the spec of a top-level name, which imports nothing."""
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
