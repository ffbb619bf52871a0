"""The shell command that installs extras of Marin: into this environment, or into one of their own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from marin_resources.settings import DISTRIBUTION, checkout


def install_command(extras: Sequence[str], *, into: str | None = None) -> str:
    """Return the command that adds `extras` to this environment; with `into`, one that makes that environment.

    uv and the lock of the checkout if there is one, else pip.
    """
    root = checkout()
    if root is None:
        return _of_package(f"{DISTRIBUTION}[{','.join(extras)}]", into)
    target = into if into is not None else None if Path(sys.prefix) == root / ".venv" else sys.prefix
    flags = " ".join(f"--extra {extra}" for extra in extras)
    variable = f"UV_PROJECT_ENVIRONMENT={shlex.quote(target)} " if target else ""
    project = "" if Path.cwd().is_relative_to(root) else f"--project {shlex.quote(str(root))} "
    return f"{variable}{_uv()} sync {project}{'' if into else '--inexact '}{flags}"


def _of_package(wanted: str, into: str | None) -> str:
    """The same for an installed package. A new environment gets it from where this one got it."""
    if into is not None:
        told = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        source = f" @ {json.loads(told)['url']}" if told else ""
        return f"{_shown(sys.executable)} -m venv {into} && {into}/bin/pip install {shlex.quote(wanted + source)}"
    pip = f"{_shown(sys.executable)} -m pip" if find_spec("pip") else f"{_uv()} pip"
    python = "" if find_spec("pip") else f" --python {_shown(sys.executable)}"
    return f"{pip} install{python} {shlex.quote(wanted)}"


def _uv() -> str:
    """uv of the PATH, or that of this environment."""
    own = os.path.join(os.path.dirname(sys.executable), "uv")
    return _shown(own) if shutil.which("uv") is None and os.path.exists(own) else "uv"


def _shown(path: str) -> str:
    """The path as one would type it here."""
    return shlex.quote(os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path)
