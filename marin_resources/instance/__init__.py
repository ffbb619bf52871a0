"""Dagster's instance as a thing to keep: back-up, restore, upgrade of its tables. `marin instance` shows it. And
the watchdog of the processes by which `marin dev` serves it.

It may import the orchestrator and the ground floor.
"""
