"""Deliveries of raw data: their names, which of them are complete, and what has changed since one was taken.

May import `marin_resources`; no Dagster, so that every decision can be tried without it."""
