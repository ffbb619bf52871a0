"""The sensors and schedules of this deployment: each file here has one or more, by whatever name, and is found.

May import `marin_sensors`, `marin_resources` and Dagster."""
