"""Find the modules that a function depends on: its own, and the project's modules that it imports, also indirectly.

They are found from the files, without importing them. A project's modules are below the folder that the function's
module is imported from, below another such folder of the same checkout, or in our own packages. Installed packages
belong to the environment, whose lock is recorded; an installed function depends on its own package.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import marin_resources
from marin_resources.drift.source_file import Import, is_file, read_code

PLUMBING_PACKAGE = "marin_resources"
"""Stages read, write and share work through it. Its own tests make sure that its changes do not change data."""
OUR_PACKAGES = frozenset({"marin_assets", PLUMBING_PACKAGE})


@dataclass(frozen=True, kw_only=True)
class Module:
    name: str
    file: str

    @property
    def is_package(self) -> bool:
        return self.file.endswith("/__init__.py")


@dataclass(frozen=True, kw_only=True)
class Root:
    """A folder on the import path."""

    folder: str
    packages: frozenset[str] | None = None
    """Top-level packages that count; None for all."""


class Modules:
    """The modules below some roots, by name. Lookups are cached, so create a new object for each search."""

    def __init__(self, start: Sequence[Module]) -> None:
        self.start = {module.name: module for module in start}
        self.roots = list(dict.fromkeys(root for module in start for root in _roots(module)))
        self._found: dict[str, Module | None] = dict(self.start)
        self._folders: dict[str, list[str]] = {}

    def find(self, name: str) -> Module | None:
        """The module of this name; None if it is not a file of the project (a namespace package has no file)."""
        if name not in self._found:
            self._found[name] = next(self._look(name), None)
        return self._found[name]

    def closure(self, counts: Callable[[Module], bool]) -> list[Module]:
        """The start and all its imports for which `counts` is true, sorted by name."""
        reached: dict[str, Module] = {}
        met = {part for name in self.start for part in with_parents(name)}
        waiting = sorted(met)
        while waiting:
            name = waiting.pop()
            module = self.find(name)
            if module is None or not (name in self.start or counts(module)):
                continue
            reached[name] = module
            for statement in read_code(module.file).imports:
                new = {part for target in self._targets(module, statement) for part in with_parents(target)} - met
                met |= new
                waiting += new
        return [reached[name] for name in sorted(reached)]

    def _targets(self, module: Module, statement: Import) -> Iterator[str]:
        """The modules that an import may name. In `from a import b`, b may be a module or an attribute."""
        target = imported_module(module, statement.level, statement.module)
        if target:
            yield target
        imported = self.find(target) if target else None
        if imported is None or imported.is_package:
            yield from (f"{target}.{name}" if target else name for name in statement.names if name != "*")

    def _look(self, name: str) -> Iterator[Module]:
        path = name.replace(".", "/")
        for folder in self._folders_with(name.partition(".")[0]):
            for file in (f"{folder}/{path}/__init__.py", f"{folder}/{path}.py"):
                if is_file(file):
                    yield Module(name=name, file=file)

    def _folders_with(self, top: str) -> list[str]:
        """The roots that contain a top-level name. Most names are installed packages, in no root."""
        if top not in self._folders:
            allowed = (root.folder for root in self.roots if root.packages is None or top in root.packages)
            self._folders[top] = [folder for folder in allowed if _has(folder, top)]
        return self._folders[top]


def _has(folder: str, top: str) -> bool:
    path = f"{folder}/{top}"
    return os.path.isdir(path) or is_file(f"{path}.py") or is_file(f"{path}/__init__.py")


@cache
def is_plumbing(name: str) -> bool:
    return name.partition(".")[0] == PLUMBING_PACKAGE


def module_of(reference: str) -> Module | None:
    """The module of "module:name" or "/path/script.py:name"; None if it has no source file, such as one in C."""
    address = reference.rpartition(":")[0]
    is_script = address.endswith(".py")
    file = address if is_script else _file_of_loaded(address)
    if not file.endswith(".py") or not is_file(file):
        return None
    return Module(name=name_of_file(file) if is_script else address, file=os.path.abspath(file))


def name_of_file(file: str) -> str:
    """The module name of a file by the `__init__.py` in its folders, however it was imported or started."""
    folder, name = os.path.split(file)
    parts = [] if name == "__init__.py" else [name.removesuffix(".py")]
    while is_file(f"{folder}/__init__.py"):
        folder, _, package = folder.rpartition("/")
        parts.insert(0, package)
    return ".".join(parts)


def _file_of_loaded(name: str) -> str:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    is_main = spec is not None and spec.name.removesuffix(".__main__") == name  # started with `python -m`
    return getattr(sys.modules.get(name) or (main if is_main else None), "__file__", None) or ""


def _roots(module: Module) -> Iterator[Root]:
    folder = _folder_of_imports(module)
    if is_installed(folder):
        yield Root(folder=folder, packages=frozenset({module.name.partition(".")[0]}))
    else:
        yield Root(folder=folder)
        yield from (Root(folder=other) for other in _others_of_checkout(folder))
    yield Root(
        folder=os.path.dirname(os.path.dirname(os.path.abspath(marin_resources.__file__))), packages=OUR_PACKAGES
    )


def _folder_of_imports(module: Module) -> str:
    """The `sys.path` folder of the module; for a script, the folder above its packages."""
    stem = module.file.removesuffix(".py").removesuffix("/__init__")
    path = "/" + module.name.replace(".", "/")
    if not stem.endswith(path):
        path = "/" + name_of_file(module.file).replace(".", "/")
    return stem.removesuffix(path)


def _others_of_checkout(folder: str) -> list[str]:
    """The other `sys.path` folders in the same checkout: a repository may have several source folders."""
    checkout = checkout_of(folder)
    paths = [os.path.abspath(path) for path in sys.path] if checkout else []
    return [path for path in paths if f"{path}/".startswith(f"{checkout}/") and not is_installed(path)]


@cache
def checkout_of(folder: str) -> str | None:
    """The root of the git checkout that holds the folder; None for none."""
    while not os.path.exists(f"{folder}/.git"):
        folder, above = os.path.dirname(folder), folder
        if folder == above:
            return None
    return folder


@cache
def is_installed(folder: str) -> bool:
    """Whether a folder belongs to installed packages or to the standard library."""
    if {"site-packages", "dist-packages"}.intersection(folder.split("/")):
        return True
    library = sysconfig.get_paths()["stdlib"]
    return f"{folder}/".startswith(f"{library}/")


def imported_module(module: Module, level: int, name: str) -> str:
    """The full module name after `from`; "" if it is above the top-level package."""
    package = module.name if module.is_package else module.name.rpartition(".")[0]
    for _ in range(level - 1):
        package = package.rpartition(".")[0]
    return ".".join(filter(None, (package if level else "", name)))


def with_parents(name: str) -> list[str]:
    """The name and its parent packages, which are executed on import."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
