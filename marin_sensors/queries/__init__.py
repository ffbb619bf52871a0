"""Queries of sensors: jobs of the cluster, materialized versions.

May import marin_resources and Dagster."""
