"""The activity of a deployment, as numbers for Prometheus: from Dagster's database and the store, at each scrape.

It may import the orchestrator, storage and the ground floor. `marin metrics` serves it.
"""
