"""Jobs on the cluster that no run waits for."""

from marin_sensors.orphaned_jobs import orphaned_jobs

__all__ = ["orphaned_jobs"]
