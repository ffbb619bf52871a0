"""The sensors, schedules and assets of `deployed/`, or of the packages that MARIN_SENSORS names.

A file that does not import is left out with a sentence; no other. A file whose sensor is None has none in this
deployment, such as one on clusters where no cluster is configured.

An asset of such a file is not a step's: a schedule materializes it, such as a report.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import ModuleType

import dagster as dg

from marin_resources.configuration.code_packages import sensor_packages

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Deployed:
    sensors: tuple[dg.SensorDefinition, ...]
    schedules: tuple[dg.ScheduleDefinition, ...]
    assets: tuple[dg.AssetsDefinition, ...]
    left_out: Mapping[str, str]
    """Name of a file -> why it is left out, in one sentence. A second file of the name has its package's before it."""


def load_deployed(steps: Collection[dg.AssetKey] = ()) -> Deployed:
    """Every file that imports, and whose sensors, schedules and assets have names of their own.

    `steps`: the keys of the assets that steps make.
    """
    sensors: dict[str, dg.SensorDefinition] = {}
    schedules: dict[str, dg.ScheduleDefinition] = {}
    assets: dict[dg.AssetKey, dg.AssetsDefinition] = {}
    left_out: dict[str, str] = {}
    for module in _modules():
        try:
            own = _load(module)
            _refuse_taken({**sensors, **schedules}, own.names, "another file has a sensor or schedule")
            _refuse_taken(_names(assets), _names(own.assets), "another file has an asset")
            _refuse_taken(_names(steps), _names(own.assets), "a step has the asset key")
        except Exception as error:  # one broken file must not take the others away
            name = module.rpartition(".")[2]
            key = name if name not in left_out else module
            left_out[key] = f"{module} is left out: {type(error).__name__}: {error}"
            log.warning(left_out[key])
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


def _modules() -> list[str]:
    """The modules of all packages, those of one package in the order of their names."""
    return [
        f"{package}.{name}"
        for package in sensor_packages()
        for name in sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__))
    ]


def _load(name: str) -> _Own:
    module = importlib.import_module(name)
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
