"""Updates of Dagster's record of assets from the store: outputs that others computed, and outputs that were removed."""
