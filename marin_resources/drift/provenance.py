"""Provenance: the commits of a step's code and of this project, the locked environment, and the user."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from functools import cache
from typing import Any

import marin_resources
from marin_resources.configuration.settings import project_root
from marin_resources.drift.source_modules import checkout_of, is_installed, module_of
from marin_resources.host.process import user_name

DISTRIBUTION = "marin-dagster"
WITHOUT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Variables of git's hooks that name one repository for every folder."""


def provenance(function: str | None = None) -> dict[str, Any]:
    """Facts about the code of a step with this function, a reference, and about this process.

    `git` is of the repository that holds the function. For a function of this project, or of an installed package, it
    is of the repository of the started script, if that has one: it holds the experiment.
    """
    return {
        "git": dict(_git(repository_of_code(function))),
        "project": {"version": _version(), **_git(_own_repository())},
        "environment": environment(),
        "user": user_name(),
    }


def repository_of_code(function: str | None = None) -> str | None:
    """The root of the repository that `git` of the provenance is about; None for none."""
    own = _own_repository()
    module = module_of(function) if function else None
    file = module.file if module else marin_resources.__file__
    repository = _repository_of(file)
    if is_installed(os.path.dirname(file)) or (own is not None and repository == own):
        repository = _repository_of(_script()) or own
    return repository


def _own_repository() -> str | None:
    return _repository_of(marin_resources.__file__)


@cache
def environment() -> dict[str, Any]:
    """The part of the provenance without git: the SHA-256 of uv.lock, Python and platform."""
    lock = project_root() / "uv.lock"
    return {
        "lock_digest": hashlib.sha256(lock.read_bytes()).hexdigest() if lock.exists() else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _repository_of(file: str | None) -> str | None:
    """The root of the git checkout that holds the file; None for none, and for an installed package."""
    folder = os.path.dirname(os.path.abspath(file)) if file else None
    return None if folder is None or is_installed(folder) else checkout_of(folder)


def _script() -> str | None:
    """The Python file that this process was started with."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    return file if file and file.endswith(".py") else None


@cache
def _version() -> str | None:
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return None


@cache
def _git(repository: str | None) -> dict[str, Any]:
    """The commit of a repository, and whether its files differ from it. Each is None without git or a commit."""
    lines = [] if repository is None else _git_status(repository)
    commits = [line.split()[2] for line in lines if line.startswith("# branch.oid ")]
    commit = commits[0] if commits and commits[0] != "(initial)" else None
    return {"commit": commit, "dirty": any(map(_is_change, lines)) if commits else None}


def _is_change(line: str) -> bool:
    """Whether a line of the status names a changed file. Python's own cache is none: the first import writes it."""
    return not line.startswith("#") and not (line.startswith("? ") and "__pycache__/" in line)


def _git_status(repository: str) -> list[str]:
    """The lines of `git status` with the commit; none without git, or if git refuses the repository."""
    command = ["git", "-C", repository, "status", "--porcelain=v2", "--branch"]
    env = {name: value for name, value in os.environ.items() if name not in WITHOUT}
    env["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
