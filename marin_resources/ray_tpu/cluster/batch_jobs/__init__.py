"""Batch jobs: one Ray job that runs many small steps of a run, each as a Ray task of its own with its own note.

May import the storage, `wire` and the rest of `cluster` below the back end.
"""
