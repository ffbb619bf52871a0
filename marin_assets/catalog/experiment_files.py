"""The files of experiments in the packages of the code location, none of which is imported.

experiments/quickstart.py       experiment quickstart
experiments/recipes/chat.py     experiment chat, of the folder recipes
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from marin_resources.configuration.code_packages import EXPERIMENTS, experiment_packages


@dataclass(frozen=True)
class ExperimentFile:
    module: str
    """Import path of the file."""
    folder: str
    """The folders between the package and the file, joined by "_"; empty for a file of the package itself."""

    @property
    def name(self) -> str:
        """The experiment's name: that of the file."""
        return self.module.rpartition(".")[2]


def experiment_files() -> tuple[ExperimentFile, ...]:
    """The files of all packages, by name. Raises SettingError for a package that cannot be imported."""
    return _files_of(_packages())


def folder_of(name: str) -> str:
    """The folder of an experiment; empty if it has none, or if no experiment has this name."""
    names = _names(os.environ.get(EXPERIMENTS, ""), os.getcwd(), tuple(sys.path))
    return _folders(_with_paths(names)).get(name, "")


Packages: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""The packages of experiments, each with its search path."""


def _packages() -> Packages:
    return _with_paths(experiment_packages())


def _with_paths(names: Iterable[str]) -> Packages:
    return tuple((name, tuple(importlib.import_module(name).__path__)) for name in names)


@lru_cache(maxsize=4)
def _names(setting: str, working_folder: str, import_path: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the packages. The arguments decide them; to read them again for each asset takes 20 ms for 60."""
    return experiment_packages()


def _files_of(packages: Packages) -> tuple[ExperimentFile, ...]:
    files = [file for package, paths in packages for file in _walk(package, paths, folder="")]
    return tuple(sorted(files, key=lambda file: file.name))


@lru_cache(maxsize=4)
def _folders(packages: Packages) -> Mapping[str, str]:
    """Experiment -> its folder. Listed once a process: a code location with another file is another process."""
    return {file.name: file.folder for file in reversed(_files_of(packages))}


def _walk(package: str, paths: Sequence[str], folder: str) -> Iterator[ExperimentFile]:
    for module in pkgutil.iter_modules(paths):
        path = f"{package}.{module.name}"
        if module.ispkg:
            inside = [os.path.join(parent, module.name) for parent in paths]
            yield from _walk(path, inside, f"{folder}_{module.name}" if folder else module.name)
        else:
            yield ExperimentFile(module=path, folder=folder)


def folders_of_files() -> frozenset[str]:
    """The real paths of all folders that hold files of experiments."""
    return frozenset(
        os.path.dirname(os.path.realpath(spec.origin))
        for file in experiment_files()
        if (spec := importlib.util.find_spec(file.module)) and spec.origin
    )
