"""Commands of Ray and of gcloud, for the verbs that are thin over them."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line, print_stderr

if TYPE_CHECKING:
    from marin_resources.clusters.cluster import Cluster

ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0"}
"""Variables of Ray's launcher. It passes its own settings to the head, whatever the file contains."""


def rendered_file(cluster: Cluster) -> Path:
    """The file of the cluster for Ray's launcher. Raises OptionError if it differs from the catalogue."""
    # late, for their weight
    from marin_resources.clusters.catalogue import default_path, templates
    from marin_resources.infra.render import render

    path = default_path().parent / f"{cluster.name}.yaml"
    if not path.is_file() or path.read_text(encoding="utf-8") != render(cluster, templates()):
        raise OptionError(f"{str(path)!r} is not as the catalogue says. Look at what changes: marin cluster render.")
    return path


def ray(*arguments: str) -> list[str]:
    """A command of the Ray beside this Python. Raises OptionError if Google's client is not installed."""
    if importlib.util.find_spec("googleapiclient") is None:
        raise OptionError("Ray needs google-api-python-client for Google Cloud. Install it: uv sync --extra gcp.")
    return [str(Path(sys.executable).with_name("ray")), *arguments]


def call(command: Sequence[str], *, dry_run: bool) -> int:
    """The exit code of a command that has this terminal, or 0 after it is only printed."""
    shown = " ".join([*(f"{name}={value}" for name, value in ENVIRONMENT.items()), shlex.join(command)])
    if dry_run:
        print_line(shown)
        return 0
    if shutil.which(command[0]) is None:
        print_stderr(f"The command {command[0]!r} is not installed, or not on the PATH.")
        return 1
    print_stderr(f"$ {shown}")
    return subprocess.run(command, env={**os.environ, **ENVIRONMENT}, check=False).returncode
