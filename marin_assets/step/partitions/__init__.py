"""Partitions: sets of keys, and which keys of its inputs a step reads.

May import marin_assets.step.values and marin_resources.types.partition_key. No I/O, no Dagster.
"""
