"""The process that a job of a Ray cluster starts: set up the process, run the task of its note, report the outcome.

May import worker, shards, log, environment, task_error, the settings of cluster, storage, drift and wire.
"""
