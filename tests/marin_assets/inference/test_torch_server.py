"""The server on torch is a script of an environment that has torch and nothing of this project."""

from __future__ import annotations

import subprocess
import sys

from marin_assets.inference.server import TORCH_SERVER


def test_the_script_starts_where_neither_this_project_nor_its_packages_are_installed() -> None:
    command = [sys.executable, "-E", "-s", "-S", str(TORCH_SERVER), "--help"]  # without site-packages
    ended = subprocess.run(command, cwd="/", capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "--served-model-name" in ended.stdout
