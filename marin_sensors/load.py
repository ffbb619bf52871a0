"""The sensors, schedules and assets in `deployed/`. A file that does not import is left out with a sentence; no other.

A file whose sensor is None has none in this deployment, such as one on clusters where no cluster is configured.

An asset of such a file is not a step's: a schedule materializes it, such as a report."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import ModuleType

import dagster as dg

FOLDER = "marin_sensors.deployed"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Deployed:
    sensors: tuple[dg.SensorDefinition, ...]
    schedules: tuple[dg.ScheduleDefinition, ...]
    assets: tuple[dg.AssetsDefinition, ...]
    left_out: Mapping[str, str]
    """Name of a file -> why it is left out, in one sentence."""


def load_deployed(steps: Collection[dg.AssetKey] = ()) -> Deployed:
    """Every file that imports, and whose sensors, schedules and assets have names of their own.

    `steps`: the keys of the assets that steps make.
    """
    sensors: dict[str, dg.SensorDefinition] = {}
    schedules: dict[str, dg.ScheduleDefinition] = {}
    assets: dict[dg.AssetKey, dg.AssetsDefinition] = {}
    left_out: dict[str, str] = {}
    folder = importlib.import_module(FOLDER)
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda module: module.name):
        try:
            own = _load(module.name)
            _refuse_taken({**sensors, **schedules}, own.names, "another file has a sensor or schedule")
            _refuse_taken(_names(assets), _names(own.assets), "another file has an asset")
            _refuse_taken(_names(steps), _names(own.assets), "a step has the asset key")
        except Exception as error:  # one broken file must not take the others away
            left_out[module.name] = f"{FOLDER}.{module.name} is left out: {type(error).__name__}: {error}"
            log.warning(left_out[module.name])
            continue
        sensors |= own.sensors
        schedules |= own.schedules
        assets |= own.assets
    return Deployed(
        sensors=tuple(sensors.values()),
        schedules=tuple(schedules.values()),
        assets=tuple(dict.fromkeys(assets.values())),
        left_out=left_out,
    )


@dataclass(frozen=True, kw_only=True)
class _Own:
    """The definitions of a file."""

    sensors: dict[str, dg.SensorDefinition]
    schedules: dict[str, dg.ScheduleDefinition]
    assets: dict[dg.AssetKey, dg.AssetsDefinition]

    @property
    def names(self) -> set[str]:
        return {*self.sensors, *self.schedules}


def _load(name: str) -> _Own:
    module = importlib.import_module(f"{FOLDER}.{name}")
    values = list(vars(module).values())
    own = _Own(
        sensors={value.name: value for value in values if isinstance(value, dg.SensorDefinition)},
        schedules={value.name: value for value in values if isinstance(value, dg.ScheduleDefinition)},
        assets={key: value for value in values if isinstance(value, dg.AssetsDefinition) for key in value.keys},
    )
    if not own.names and not own.assets and not _is_not_for_this_deployment(module):
        raise ValueError("it has no sensor, no schedule and no asset. Assign one to a name in it")
    return own


def _is_not_for_this_deployment(module: ModuleType) -> bool:
    """Whether a name of the file is None, in place of a sensor."""
    return any(value is None and not name.startswith("_") for name, value in vars(module).items())


def _names(keys: Collection[dg.AssetKey]) -> set[str]:
    return {key.to_user_string() for key in keys}


def _refuse_taken(taken_names: Collection[str], own: Collection[str], owner: str) -> None:
    if taken := sorted(set(taken_names) & set(own)):
        raise ValueError(f"{owner} {taken[0]!r} too. Rename one of them")
