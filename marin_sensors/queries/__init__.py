"""Queries of sensors: jobs of the cluster, revisions of external datasets, spending, materialized versions.

May import marin_resources and Dagster."""
