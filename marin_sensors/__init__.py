"""WHEN it happens: sensors and schedules. `deployed/` has those of the deployment, which `definitions.py` loads.

May import `marin_resources` and Dagster, never `marin_assets`."""
