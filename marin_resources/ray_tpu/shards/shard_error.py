"""The error of a stage one of whose shards failed."""

from marin_resources.types.errors import MarinError


class ShardError(MarinError):
    """A shard failed: one sentence with its index, its function, the reason and its config."""
