"""`marin speedrun …`: entries of speedruns in files. One verb, one file."""

from __future__ import annotations

VERBS = {"check": "find what is wrong in submitted entries", "page": "the page of entries: front, tracks, recipes"}
"""Name of the verb, and of its file -> its description."""
