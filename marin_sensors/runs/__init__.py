"""Runs of sensors and schedules: those that they request, those in progress, and why one failed.

May import `deliveries`, `looks`, marin_resources and Dagster."""
