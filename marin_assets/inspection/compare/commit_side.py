"""A side of a comparison from a commit of git: the experiments as they were, built by a process.

In:  a commit, and the name of one experiment or none for all.   Out: a side.

The experiments are those of one package, the first of MARIN_EXPERIMENTS.

`git archive` writes the commit into a temporary folder, so the checkout is not touched, and nothing is left in the
repository. If the commit has the package `marin_assets` itself, the process imports it from there; else, as in a
repository with a folder of experiments alone, it imports the installed one. The code of the commit is executed.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marin_assets.inspection.compare import commit_process
from marin_assets.inspection.compare.commit_process import BEGIN
from marin_assets.inspection.compare.side import Side, SideStep, side_of
from marin_assets.step.values import ConfigError
from marin_resources.configuration.code_packages import experiment_packages
from marin_resources.drift.provenance import WITHOUT
from marin_resources.storage.paths import join

DIGITS = 12
"""Digits of a commit that are shown."""
TIMEOUT_S = 600
"""Time limit of a process that imports all experiments."""
PROCESS = Path(commit_process.__file__)


def commit_of(text: str) -> str | None:
    """The commit that a reference of git resolves to, in the repository of the experiments; None if it does not."""
    done = _git(_folder(), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    return done.stdout.decode().strip() if done is not None and done.returncode == 0 else None


def side_of_commit(text: str, commit: str, experiment: str | None, prefix: str) -> Side:
    """The experiments of a commit that `commit_of` has found. Raises ConfigError."""
    root = _root()
    with tempfile.TemporaryDirectory(prefix="marin-commit-") as checkout:
        _extract(root, commit, checkout)
        listing = _steps_in(Path(checkout), os.path.relpath(_folder(), root), text, experiment)
    title = f"the commit {commit[:DIGITS]}" + ("" if commit.startswith(text) else f" ({text})")
    title += f", experiment {experiment!r}" if experiment else ""
    steps = [SideStep(**{**step, "path": _located(step["path"], prefix)}) for step in listing["steps"]]
    left_out = "; ".join(f"{name!r} is left out ({why})" for name, why in listing["left_out"].items())
    return side_of(title, steps, f"Of {title}: {left_out}." if left_out else "")


def _extract(root: str, commit: str, folder: str) -> None:
    """Write the files of the commit into a folder. Raises ConfigError."""
    done = _git(root, "archive", "--format=tar", commit)
    if done is None or done.returncode != 0:
        why = "git cannot be called" if done is None else done.stderr.decode(errors="replace").strip().rstrip(".")
        raise ConfigError(
            f"The commit {commit!r} cannot be read ({why}). Give a commit of the experiments' repository."
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(folder, filter="data")


def _steps_in(checkout: Path, below: str, text: str, experiment: str | None) -> Mapping[str, Any]:
    folder = checkout / below
    if not folder.is_dir():
        raise ConfigError(f"The commit {text!r} has no folder {below!r} of experiments. Give a commit that has it.")
    own = (checkout / "marin_assets" / "__init__.py").is_file()
    package = _package()
    above = os.path.normpath(checkout / below / "/".join([".."] * (package.count(".") + 1)))
    paths = [str(checkout)] if own else [above, str(checkout), *filter(None, sys.path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-c", PROCESS.read_text(encoding="utf-8"), str(folder), experiment or "", package]
    try:
        done = subprocess.run(
            words, cwd=checkout, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"The experiments of the commit {text!r} did not load in {TIMEOUT_S} s.") from None
    _, begin, after = done.stdout.partition(f"{BEGIN}\n")
    if not begin:
        last = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
        raise ConfigError(f"The experiments of the commit {text!r} cannot be built: {last.rstrip('.')}.")
    listing = json.loads(after)
    if experiment is not None and experiment not in listing["names"]:
        names = ", ".join(listing["names"]) or "none"
        raise ConfigError(f"The commit {text!r} has no experiment {experiment!r}, expected one of {names}.")
    if experiment in listing["left_out"]:
        why = " ".join(listing["left_out"][experiment].split()).rstrip(".")
        raise ConfigError(f"The experiment {experiment!r} of the commit {text!r} cannot be built: {why}.")
    return listing


def _located(path: str, prefix: str) -> str:
    return path if path.startswith("/") or "://" in path else join(prefix, path)


def _package() -> str:
    return experiment_packages()[0]


def _folder() -> str:
    return os.path.realpath(next(iter(importlib.import_module(_package()).__path__)))


def _root() -> str:
    """The root of the repository that has the folder of experiments."""
    done = _git(_folder(), "rev-parse", "--show-toplevel")
    return os.path.realpath(done.stdout.decode().strip()) if done is not None else _folder()


def _git(folder: str, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    """The outcome of a command of git; None without git."""
    env = {name: value for name, value in os.environ.items() if name not in WITHOUT}
    try:
        return subprocess.run(["git", "-C", folder, *words], env=env, capture_output=True, check=False)
    except OSError:
        return None
