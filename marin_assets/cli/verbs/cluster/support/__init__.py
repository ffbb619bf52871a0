"""Shared parts of the verbs of `marin cluster`: the connection, the slices, small steps and the output of jobs.

May import `marin_assets.run`, `marin_resources.ray_tpu` and `marin_resources.infra`.
"""
