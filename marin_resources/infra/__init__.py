"""The Ray clusters on Google Cloud that own the TPU pods: their catalogue, and what is made of it.

`infra/clusters.toml` has the facts. May import `ray_tpu`, which asks a head, and what is below it.
"""
