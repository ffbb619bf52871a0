"""The Ray clusters on Google Cloud that own the TPU pods: their catalogue, and what follows from it.

`infra/clusters.toml` has the facts. May import `ray_tpu`, for requests to a head, and the packages below it.
"""
