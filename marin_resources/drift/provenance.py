"""Which code made an output: the commit, whether the checkout differed from it, and the locked environment."""

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
    """Facts about this process's code, the same for every record it has a part in. Asked once a process."""
    return {"git": _git(), "environment": environment(), "user": user_name()}


@cache
def environment() -> dict[str, Any]:
    """The part of it that needs no git: the digest of uv.lock, and the Python."""
    lock = project_root() / "uv.lock"
    return {
        "lock_digest": hashlib.sha256(lock.read_bytes()).hexdigest() if lock.exists() else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _git() -> dict[str, Any]:
    commit = _ask_git("rev-parse", "HEAD")
    status = _ask_git("status", "--porcelain")
    return {"commit": commit, "dirty": None if status is None else bool(status)}


def _ask_git(*words: str) -> str | None:
    """git's answer about the checkout, or None where there is no git, no checkout or no commit yet."""
    try:
        done = subprocess.run(["git", *words], cwd=project_root(), capture_output=True, text=True, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
