"""What several verbs of `marin cluster` share: the connection, the slices, small steps and the output of jobs.

May import `marin_assets.run`, `marin_resources.ray_tpu` and `marin_resources.infra`.
"""
