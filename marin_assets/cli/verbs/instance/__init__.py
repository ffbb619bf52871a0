"""`marin instance …`: keep Dagster's instance small. One verb, one file."""

from __future__ import annotations

VERBS = {"prune": "delete the old runs that only reused"}
"""Name of the verb, and of its file -> its description."""
