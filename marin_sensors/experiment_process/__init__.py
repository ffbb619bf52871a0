"""An experiment in a process of its own, of which nothing outlives the run that started it.

May import `marin_resources`; no Dagster."""
