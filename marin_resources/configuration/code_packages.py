"""The packages of the code location: those whose modules are experiments, and those whose modules have sensors.

MARIN_EXPERIMENTS   between commas   default: marin_assets.experiments
MARIN_SENSORS       between commas   default: marin_sensors.deployed
"""

from __future__ import annotations

import importlib.util
import os
import sys

from marin_resources.configuration.own_project import own_project
from marin_resources.configuration.settings import SettingError

EXPERIMENTS, SENSORS = "MARIN_EXPERIMENTS", "MARIN_SENSORS"
SHIPPED_EXPERIMENTS, SHIPPED_SENSORS = "marin_assets.experiments", "marin_sensors.deployed"


def experiment_packages() -> tuple[str, ...]:
    """The packages whose modules are experiments. Raises SettingError for one that cannot be imported."""
    return _packages(EXPERIMENTS, SHIPPED_EXPERIMENTS)


def sensor_packages() -> tuple[str, ...]:
    """The packages whose modules have sensors and schedules. Raises SettingError for one that cannot be imported."""
    return _packages(SENSORS, SHIPPED_SENSORS)


def _packages(variable: str, shipped: str) -> tuple[str, ...]:
    """The packages that a variable names. The project's folder is on the import path from then on."""
    value = os.environ.get(variable, "")
    names = [name.strip() for name in value.split(",") if name.strip()] or [shipped]
    project = own_project()
    if project is not None and str(project) not in sys.path:
        sys.path.insert(0, str(project))
    for name in names:
        if problem := _problem(name):
            raise SettingError(
                f"{variable} is {value!r}, expected packages between commas, such as {shipped}: {problem}."
            )
    return tuple(dict.fromkeys(names))


def _problem(name: str) -> str:
    """Why a name is not that of a package, empty if it is."""
    if not all(part.isidentifier() for part in name.split(".")):
        return f"{name!r} is no name of a package"
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    except Exception as error:  # of the code of a package above it
        return f"{name!r} cannot be imported ({type(error).__name__}: {error})"
    if spec is None:
        return f"there is no package {name!r} for a process that starts in {os.getcwd()}"
    return "" if spec.submodule_search_locations is not None else f"{name!r} is a module, not a package"
