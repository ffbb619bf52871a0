"""WHEN it happens: the sensors and schedules of the deployment, which `definitions.py` reads from `SENSORS`.

May import `marin_resources` and Dagster, never `marin_assets`."""

import dagster as dg

from marin_sensors import orphaned_jobs

SENSORS: tuple[dg.SensorDefinition, ...] = (orphaned_jobs.orphaned_jobs,)
