"""The sensors and schedules of this deployment, and assets of theirs: each file here has some, by whatever name.

May import `marin_sensors`, `marin_resources` and Dagster."""
