"""The packages of this environment, compared with what the project declares."""

from __future__ import annotations

import platform
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata

from packaging.requirements import Requirement

from marin_resources.configuration.command import make_or
from marin_resources.configuration.settings import DISTRIBUTION, checkout
from marin_resources.doctor.finding import Finding, ok, wrong
from marin_resources.ray_tpu.environment.extras import installed_extras, known_extras

SUBJECT = "packages"


def look() -> Iterator[Finding]:
    extras = installed_extras()
    declared = [*declared_base(), *(line for extra in sorted(extras) for line in known_extras()[extra])]
    upgrade = f"{sys.executable} -m pip install --upgrade {DISTRIBUTION}"
    unmet = sorted(set(unmet_requirements(declared)))
    for sentence in unmet:
        yield wrong(SUBJECT, f"{sentence} Run: {make_or('init', upgrade)}")
    if not unmet:
        ours = ", ".join(f"{name} {metadata.version(name)}" for name in ("dagster", "ray"))
        with_extras = ", ".join(sorted(extras)) or "none"
        yield ok(SUBJECT, f"Python {platform.python_version()}, {ours}; extras: {with_extras}")


def declared_base() -> list[str]:
    """The requirements without any extra: those of the checkout's pyproject.toml, else of the wheel."""
    root = checkout()
    if root is not None:
        return list(tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"])
    lines = metadata.requires(DISTRIBUTION) or []
    return [line for line in lines if "extra ==" not in line]


def unmet_requirements(lines: Iterable[str]) -> Iterator[str]:
    """A sentence for each requirement that what is installed does not meet."""
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield f"{requirement.name} is not installed, expected {requirement.specifier or 'any version'}."
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            yield f"{requirement.name} is {version}, expected {requirement.specifier}."
