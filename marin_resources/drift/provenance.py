"""Provenance: the commit, whether the checkout differed from it, the locked environment, and the user."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import cache
from typing import Any

from marin_resources.process import user_name
from marin_resources.settings import project_root


@cache
def provenance() -> dict[str, Any]:
    """Facts about the code of this process, the same for all its records. Computed once per process."""
    return {"git": _git(), "environment": environment(), "user": user_name()}


@cache
def environment() -> dict[str, Any]:
    """The part of the provenance without git: the SHA-256 of uv.lock, Python and platform."""
    lock = project_root() / "uv.lock"
    return {
        "lock_digest": hashlib.sha256(lock.read_bytes()).hexdigest() if lock.exists() else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _git() -> dict[str, Any]:
    commit = _git_output("rev-parse", "HEAD")
    status = _git_output("status", "--porcelain")
    return {"commit": commit, "dirty": None if status is None else bool(status)}


def _git_output(*words: str) -> str | None:
    """The output of a git command; None without git, a checkout or a commit."""
    try:
        done = subprocess.run(["git", *words], cwd=project_root(), capture_output=True, text=True, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
