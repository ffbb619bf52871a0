"""Check that this environment has what steps require: packages of their extras, variables by name."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from marin_resources.configuration.settings import DISTRIBUTION, checkout
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.requirements import MissingRequirement, Requirements, describe_missing, merge_missing
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

FRESH_PROCESS_EXTRAS = frozenset({"train", "evaluate", "vllm", "gpu", "tpu"})
"""Extras that load JAX or torch, which hold threads, memory and devices until their process ends."""
CONFLICTS = frozenset(
    {
        *(frozenset({"vllm", other}) for other in ("train", "evaluate", "curate", "gpu", "tpu")),
        frozenset({"gpu", "tpu"}),
    }
)
"""Extras that cannot be installed in one environment, as in pyproject.toml."""
SIMPLE_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)[^;\[]*")
"""A requirement with neither extras nor a marker, which needs no parser. Its group is the package's name."""


class MissingRequirementError(MarinError):
    """A requirement of a step is not in its environment: one sentence with the command that installs or sets it."""


def check_environment(requirements: Requirements) -> None:
    """Raise MissingRequirementError with a sentence for each extra that is unknown or not installed, and for all
    variables that are not set."""
    if sentences := describe_missing(missing_in_environment([requirements])):
        raise MissingRequirementError(" ".join(sentences))


def met_here(required: Requirements, cpus: int | None = None) -> bool:
    """Whether this machine, with that number of CPUs, is known to meet them without Ray and without package indexes."""
    available = Resources(cpus=min(required.resources.cpus, cpus or os.cpu_count() or 1))
    return not required.packages and required.resources == available and not missing_in_environment([required])


def missing_in_environment(required: Sequence[Requirements]) -> dict[str, tuple[MissingRequirement, ...]]:
    """Return the missing extras and variables of each step that lacks any here."""
    wrong, variables, installable, incomplete = {}, {}, {}, []
    for requirements in required:
        missing = (*unknown_extras(requirements.extras), *_clash_within(requirements.extras))
        wrong[requirements.step] = missing
        variables[requirements.step] = _unset_variables(requirements.env)
        if not missing and missing_packages(requirements.extras):
            incomplete.append(requirements)
    together = (
        _fit_together({extra for requirements in incomplete for extra in requirements.extras}) if incomplete else set()
    )
    for requirements in incomplete:
        absent = missing_packages(requirements.extras)
        verb = "is" if len(absent) == 1 else "are"
        remedy = _how_to_install(requirements.extras, together)
        thing = f"{', '.join(absent)}, which {verb} not installed"
        installable[requirements.step] = (MissingRequirement(verb="needs", what=thing, remedy=remedy),)
    return merge_missing(wrong, installable, variables)


def unknown_extras(extras: Iterable[str]) -> tuple[MissingRequirement, ...]:
    """Return the extras that do not exist, with those that do, as one lack; none if all exist."""
    unknown = [repr(extra) for extra in extras if extra not in known_extras()]
    if not unknown:
        return ()
    named = f"the extra {unknown[0]}" if len(unknown) == 1 else f"the extras {', '.join(unknown)}"
    thing = f"{named}, which {DISTRIBUTION} does not have"
    remedy = f"Expected some of {', '.join(sorted(known_extras()))}."
    return (MissingRequirement(verb="requests", what=thing, remedy=remedy),)


@cache
def known_extras() -> dict[str, list[str]]:
    """Return for each extra the requirements it is declared with.

    From the checkout's pyproject.toml, which may be newer than what is installed; else from the metadata of the wheel.
    """
    root = checkout()
    if root is not None:
        declared: dict[str, list[str]] = tomllib.loads((root / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ]
        return declared
    from packaging.requirements import Requirement  # late, for its weight

    own = metadata.metadata(DISTRIBUTION)
    conditional = [line for line in own.get_all("Requires-Dist") or [] if not _holds(Requirement(line), "")]
    return {
        extra: [line for line in conditional if _holds(Requirement(line), extra)]
        for extra in own.get_all("Provides-Extra") or []
    }


@cache
def packages_of(extra: str) -> list[str]:
    """Return the names of the packages of a known extra on this platform."""
    return [name for line in known_extras()[extra] for name in _names(line, extra)]


def _names(line: str, extra: str) -> list[str]:
    """The packages that a requirement of an extra stands for here: none if its marker is not met."""
    simple = SIMPLE_REQUIREMENT.fullmatch(line)
    if simple:
        return [simple[1]]
    from packaging.requirements import Requirement  # late, for its weight: few requirements are not simple

    requirement = Requirement(line)
    return [requirement.name, *_of_its_extras(requirement)] if _holds(requirement, extra) else []


def _of_its_extras(requirement: Requirement) -> list[str]:
    """The packages of "jax[cuda12]" beside jax, if that is installed: CUDA is missing where jax alone is installed."""
    from packaging.requirements import Requirement  # late, for its weight

    if not requirement.extras or not _installed(requirement.name):
        return []
    lines = [Requirement(line) for line in metadata.requires(requirement.name) or []]
    return [
        line.name for line in lines if not _holds(line, "") and any(_holds(line, extra) for extra in requirement.extras)
    ]


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def missing_packages(extras: Iterable[str]) -> list[str]:
    """Return the packages of known extras that are not installed here, sorted."""
    return sorted({name for extra in extras for name in packages_of(extra) if not _installed(name)})


def installed_extras() -> set[str]:
    """Return the extras of which all packages are installed here."""
    return {extra for extra in known_extras() if packages_of(extra) and not missing_packages([extra])}


def clashing(extras: Collection[str], others: Collection[str]) -> list[str]:
    """Return those of `others` that cannot be in one environment with `extras`, sorted."""
    return sorted({other for extra in extras for other in others if frozenset({extra, other}) in CONFLICTS})


def _clash_within(extras: Sequence[str]) -> tuple[MissingRequirement, ...]:
    clash = clashing(extras, extras)
    if not clash:
        return ()
    thing = f"the extras {' and '.join(clash)}, which cannot be installed in one environment"
    remedy = "Split it into steps that request one of them each."
    return (MissingRequirement(verb="requests", what=thing, remedy=remedy),)


def _unset_variables(names: Iterable[str]) -> tuple[MissingRequirement, ...]:
    """A lack for each, as steps share some of their variables, and a sentence names all steps that lack one."""
    return tuple(
        MissingRequirement(verb="requires", what=f"the variable {name!r}, which is not set", remedy="Export it.")
        for name in names
        if name not in os.environ
    )


def _fit_together(extras: Collection[str]) -> set[str]:
    """The installed extras, and those of `extras` that fit beside them, the first of pyproject.toml first."""
    fitting = installed_extras()
    for extra in known_extras():
        if extra in extras and not clashing([extra], fitting):
            fitting.add(extra)
    return fitting


def _how_to_install(extras: Sequence[str], together: Collection[str]) -> str:
    """The command that installs all extras that fit together; for extras that do not, an environment of their own."""
    if set(extras) <= set(together):
        missing = [extra for extra in known_extras() if extra in together and missing_packages([extra])]
        return f"Run: {install_command(missing)}"
    beside, own = ", ".join(clashing(extras, together)), "-".join(extras)
    return (
        f"It cannot be installed beside {beside}. Make an environment of its own, and run the step with its Python: "
        f"{install_command(extras, into=f'.venv-{own}')}"
    )


@cache
def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def install_command(extras: Sequence[str], *, into: str | None = None) -> str:
    """Return the command that adds `extras` to this environment; with `into`, one that makes that environment.

    With uv and the lock of the checkout if it exists, else with pip.
    """
    root = checkout()
    if root is None:
        return _of_package(f"{DISTRIBUTION}[{','.join(extras)}]", into)
    target = into if into is not None else None if Path(sys.prefix) == root / ".venv" else sys.prefix
    flags = " ".join(f"--extra {extra}" for extra in extras)
    variable = f"UV_PROJECT_ENVIRONMENT={shlex.quote(target)} " if target else ""
    project = "" if Path.cwd().is_relative_to(root) else f"--project {shlex.quote(str(root))} "
    return f"{variable}{_uv()} sync {project}{'' if into else '--inexact '}{flags}"


def _of_package(requirement: str, into: str | None) -> str:
    """The command for an installed package. A new environment gets it from the source of this one."""
    if into is not None:
        origin = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        source = f" @ {json.loads(origin)['url']}" if origin else ""
        return f"{_shown(sys.executable)} -m venv {into} && {into}/bin/pip install {shlex.quote(requirement + source)}"
    pip = f"{_shown(sys.executable)} -m pip" if find_spec("pip") else f"{_uv()} pip"
    python = "" if find_spec("pip") else f" --python {_shown(sys.executable)}"
    return f"{pip} install{python} {shlex.quote(requirement)}"


def _uv() -> str:
    """uv of the PATH, or that of this environment."""
    own = os.path.join(os.path.dirname(sys.executable), "uv")
    return _shown(own) if shutil.which("uv") is None and os.path.exists(own) else "uv"


def _shown(path: str) -> str:
    """The path as one would type it here."""
    return shlex.quote(os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path)
