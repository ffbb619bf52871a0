"""The Python of an environment of its own, for packages that do not share ours: a variable names it, else a folder of
the checkout."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from marin_resources.configuration.command import make_or
from marin_resources.configuration.settings import checkout
from marin_resources.types.errors import MarinError

IMPORT_TIMEOUT_S = 60.0


class NoPythonError(MarinError):
    """An environment is not on this machine, or lacks a package. The message has the command that makes it."""


def own_python(
    subject: str, name: str, modules: Sequence[str], *, packages: Sequence[str] = (), or_this: bool = False
) -> str:
    """The Python with these modules: that of MARIN_<NAME>_PYTHON, else of .venv-<name> in the checkout, else, with
    `or_this`, the running one if it has them. `subject` begins the sentence; `packages` are what pip calls the modules,
    where it calls them otherwise. Raises NoPythonError."""
    variable, folder = f"MARIN_{name.upper()}_PYTHON", f".venv-{name}"
    how_to_make = _how_to_make(variable, folder, packages or modules)
    python = os.environ.get(variable)
    if not python:
        root = checkout()
        beside = root / folder / "bin/python" if root else None
        if beside is not None and beside.exists():
            python = str(beside)
        elif or_this and all(find_spec(module) for module in modules):
            return sys.executable
        else:
            raise NoPythonError(
                f"{subject} needs an environment of its own, and there is none: {variable} is not set, and "
                f"{beside or folder} does not exist. {how_to_make}"
            )
    if lacking := _lacking(python, modules):
        raise NoPythonError(
            f"{subject} needs {', '.join(modules)}, and {python!r} {lacking}. Set {variable} to the "
            f"Python of an environment with them. {how_to_make}"
        )
    return python


def _how_to_make(variable: str, folder: str, packages: Sequence[str]) -> str:
    """A sentence with the command that makes the environment."""
    python, environment = os.path.abspath(folder), shlex.quote(folder)
    pip = f"{environment}/bin/pip install {' '.join(packages)}"
    installed = f"{sys.executable} -m venv {environment} && {pip} && export {variable}={python}/bin/python"
    return f"Make one: {make_or(folder, installed)}"


def _lacking(python: str, modules: Sequence[str]) -> str:
    """The modules that `python` lacks, as the end of a sentence; empty if it has all. They are not imported."""
    script = "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        process = subprocess.run(
            [python, "-c", script, *modules],
            capture_output=True,
            text=True,
            timeout=IMPORT_TIMEOUT_S,
            env=environment,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run ({error})"
    if process.returncode:
        return f"cannot be run ({process.stderr.strip()[-200:]})"
    return f"lacks {', '.join(process.stdout.split())}" if process.stdout.split() else ""


def executable(python: str) -> str:
    """The path of a Python, absolute but not resolved: a link in an environment is what makes it that environment's."""
    return str(Path(python).absolute()) if os.sep in python else python
