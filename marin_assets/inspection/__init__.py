"""Questions to records: why an output was computed, in what experiments differ, what outputs cost, what is unused.

May import marin_assets.plan, marin_assets.catalog and marin_resources. Dagster is not loaded.
"""
