"""Token caches: their format, and their tokens."""
