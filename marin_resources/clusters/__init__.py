"""The Ray clusters of a deployment: the catalogue infra/clusters.toml, and what it says of each.

May import accelerators and settings.
"""
