"""Runs of assets from a process without a UI: at once, in Dagster's queue, as a backfill; and their records."""
