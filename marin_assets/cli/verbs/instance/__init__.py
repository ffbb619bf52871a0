"""`marin instance …`: back up, restore, prune and upgrade Dagster's runs, events and ticks. One verb, one file."""

from __future__ import annotations

VERBS = {
    "backup": "write runs, events and ticks to one file, also while they are in use",
    "restore": "put a back-up in place",
    "prune": "delete the old runs that only reused",
    "upgrade": "upgrade Dagster's tables to the installed release",
}
"""Name of the verb, and of its file -> its description."""
