"""Dagster's record of assets made equal to the store: outputs that others computed, and outputs that were removed."""
