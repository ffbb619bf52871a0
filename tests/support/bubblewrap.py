"""Bubblewrap of this machine, or of Debian's package without its installation."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def path_with_bubblewrap(folder: Path) -> str:
    """The PATH, with bubblewrap on it: that of the machine, or unpacked below `folder` if it can be had."""
    path = os.environ["PATH"]
    if shutil.which("bwrap") or not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        return path
    command = ["apt-get", "download", "-q", "bubblewrap"]
    if subprocess.run(command, cwd=folder, capture_output=True, timeout=240).returncode:
        return path
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return f"{folder}/usr/bin{os.pathsep}{path}"
