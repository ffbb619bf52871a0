"""Check that the environment has what a step requires: packages of its extras, variables by name."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from marin_resources.settings import project_root

FRESH_PROCESS_EXTRAS = frozenset({"train", "evaluate", "vllm", "gpu", "tpu"})
"""Extras that load JAX or torch, which hold threads, memory and devices until their process ends."""


class MissingRequirementError(RuntimeError):
    """A requirement of a step is not in its environment: one sentence with the command that installs or sets it."""


def check_environment(step: str, extras: Sequence[str], env: Sequence[str]) -> None:
    """Raise MissingRequirementError for an extra that is unknown or not installed, or a variable that is not set."""
    known = known_extras()
    for extra in extras:
        if extra not in known:
            raise MissingRequirementError(
                f"Step {step!r} requests the extra {extra!r}, which pyproject.toml does not have. "
                f"Expected some of {', '.join(sorted(known))}."
            )
    missing = sorted({name for extra in extras for name in known[extra] if not _installed(name)})
    if missing:
        flags = " ".join(f"--extra {extra}" for extra in extras)
        raise MissingRequirementError(
            f"Step {step!r} needs {', '.join(missing)}, which is not installed. Run: uv sync --inexact {flags}"
        )
    for name in env:
        if name not in os.environ:
            raise MissingRequirementError(f"Step {step!r} requires the variable {name!r}, which is not set. Export it.")


@cache
def known_extras() -> dict[str, list[str]]:
    """Return for each extra the names of its packages on this platform."""
    from packaging.requirements import Requirement  # late, for its weight

    text = _pyproject()
    if text is None:
        return {extra: [] for extra in metadata.metadata("marin-dagster").get_all("Provides-Extra") or []}
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    parsed = {extra: [Requirement(line) for line in lines] for extra, lines in extras.items()}
    return {
        extra: [r.name for r in requirements if r.marker is None or r.marker.evaluate()]
        for extra, requirements in parsed.items()
    }


def _pyproject() -> str | None:
    path = Path(project_root()) / "pyproject.toml"
    return path.read_text() if path.exists() else None


@cache
def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
