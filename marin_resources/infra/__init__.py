"""The Ray clusters on Google Cloud that own the TPU pods: their catalogue, and what is made of it.

`infra/clusters.toml` has the facts. May import what is below `ray_tpu`; jobs on a cluster are `ray_tpu.cluster`.
"""
