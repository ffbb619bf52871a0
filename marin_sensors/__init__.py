"""WHEN it happens: sensors and schedules of the deployment, which `definitions.py` picks up from `SENSORS`."""

import dagster as dg

SENSORS: tuple[dg.SensorDefinition, ...] = ()
