"""WHEN it happens: sensors and schedules of the deployment, which `definitions.py` picks up from `SENSORS`."""

import dagster as dg

from marin_sensors import orphaned_jobs

SENSORS: tuple[dg.SensorDefinition, ...] = (orphaned_jobs.orphaned_jobs,)
