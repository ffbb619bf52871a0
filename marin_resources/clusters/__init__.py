"""The Ray clusters of a deployment: the catalogue infra/clusters.toml, and its facts of each.

May import accelerators and settings.
"""
