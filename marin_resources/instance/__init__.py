"""The runs of Dagster's instance that may be deleted: `marin instance prune` deletes them. And the
watchdog of the processes by which `marin dev` serves it.

It may import the orchestrator and the ground floor.
"""
