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
    uv = str(UV) if UV.exists() else shutil.which("uv")
    if uv is None:
        raise RuntimeError(f"uv is not at {str(UV)!r} and not on the path. Run `make init` first.")
    packages = [word for name in (RELEASE, *UNDECLARED) for word in ("--with", name)]
    command = [
        uv,
        "run",
        "--isolated",
        "--no-project",
        "--python",
        sys.executable,
        *packages,
        "--prerelease=allow",
        "python",
    ]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MARIN_", "DAGSTER_", "PYTHON", "RAY_"))}
    done = subprocess.run(
        [*command, str(SIDES / script), *arguments],
        env={**clean, "JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        cwd=SIDES,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{script} in marin-core's environment ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])
