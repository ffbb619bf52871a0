"""The Ray clusters of a deployment: the catalogue infra/clusters.toml, and its facts of each.

May import the packages `hardware`, `configuration` and `types`.
"""
