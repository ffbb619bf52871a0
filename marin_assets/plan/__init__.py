"""The plan of a run: actions, reasons, estimates, sites, partitions, and the facts of a record.

May import marin_assets.catalog, marin_assets.step and marin_resources. Dagster is not loaded, so that a dry run answers
at once.
"""
