"""The sensors and schedules in `deployed/`. A file that does not import is left out with a sentence, and no other."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

FOLDER = "marin_sensors.deployed"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Deployed:
    sensors: tuple[dg.SensorDefinition, ...]
    schedules: tuple[dg.ScheduleDefinition, ...]
    left_out: Mapping[str, str]
    """Name of a file -> why it is left out, in one sentence."""


def load_deployed() -> Deployed:
    """Every file that imports, and whose sensors and schedules have names of their own."""
    found: dict[str, dg.SensorDefinition | dg.ScheduleDefinition] = {}
    left_out: dict[str, str] = {}
    folder = importlib.import_module(FOLDER)
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda module: module.name):
        try:
            own = _load(module.name)
            if taken := sorted(own.keys() & found.keys()):
                raise ValueError(f"another file has a sensor or schedule {taken[0]!r} too. Rename one of them")
        except Exception as error:  # one broken file must not take the others away
            left_out[module.name] = f"{FOLDER}.{module.name} is left out: {type(error).__name__}: {error}"
            log.warning(left_out[module.name])
            continue
        found |= own
    return Deployed(
        sensors=tuple(each for each in found.values() if isinstance(each, dg.SensorDefinition)),
        schedules=tuple(each for each in found.values() if isinstance(each, dg.ScheduleDefinition)),
        left_out=left_out,
    )


def _load(name: str) -> dict[str, dg.SensorDefinition | dg.ScheduleDefinition]:
    module = importlib.import_module(f"{FOLDER}.{name}")
    own = {
        value.name: value
        for value in vars(module).values()
        if isinstance(value, dg.SensorDefinition | dg.ScheduleDefinition)
    }
    if not own:
        raise ValueError("it has no sensor and no schedule. Assign one to a name in it")
    return own
