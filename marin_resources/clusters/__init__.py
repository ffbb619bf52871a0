"""The Ray clusters of a deployment: the catalogue infra/clusters.toml, and its facts of each.

May import the rooms `hardware`, `configuration` and `types`.
"""
