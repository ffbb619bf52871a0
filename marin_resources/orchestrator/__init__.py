"""What Dagster runs: the executor, the IO manager, the resources, and how one output is produced.

May import every other room of marin_resources, and Dagster.
"""
