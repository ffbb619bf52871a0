"""marin-core in an environment of its own: its requirements contradict ours, so it is run as another process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

RELEASE = "marin-core==0.2.20.dev202606180959"
UNDECLARED = ("gitpython", "chex")
"""marin-core imports Levanter, which imports these and does not require them."""
SIDES = Path(__file__).resolve().parent
UV = SIDES.parents[2] / ".tools/bin/uv"


def run_marin(script: str, *arguments: str) -> Any:
    """The JSON on the last line that a script beside this file prints. Raises RuntimeError with its output's end."""
    done = subprocess.run(
        [*marin_python(), str(SIDES / script), *arguments],
        env=marin_environment(),
        capture_output=True,
        text=True,
        cwd=SIDES,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{script} in marin-core's environment ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def marin_python() -> list[str]:
    """The command that is Python with marin-core: uv makes its environment (1.8 GB in uv's cache, once)."""
    uv = str(UV) if UV.exists() else shutil.which("uv")
    if uv is None:
        raise RuntimeError(f"uv is not at {str(UV)!r} and not on the path. Run `make init` first.")
    packages = [word for name in (RELEASE, *UNDECLARED) for word in ("--with", name)]
    own = ["--isolated", "--no-project", "--python", sys.executable, "--prerelease=allow"]
    return [uv, "run", *own, *packages, "python"]


def marin_environment() -> dict[str, str]:
    """This process's environment variables without those that are about our Marin, Dagster, Python or Ray."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MARIN_", "DAGSTER_", "PYTHON", "RAY_"))}
    return {**clean, "JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"}
