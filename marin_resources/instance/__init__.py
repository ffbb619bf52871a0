"""Dagster's instance as a thing to keep: back-up, restore, upgrade of its tables. `marin instance` shows it.

It may import the orchestrator and the ground floor.
"""
