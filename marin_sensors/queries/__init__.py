"""What sensors look at: jobs of the cluster, somebody else's dataset, what was used, what was materialized.

May import marin_resources and Dagster."""
