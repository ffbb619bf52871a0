"""Compute logs, the captured output of runs and ticks: in the prefix, and on this machine until they are stored there.

May import `marin_resources.storage` and Dagster. Uploads are not part of a run: it neither fails nor waits for them.
"""
