"""The error of a stage one of whose shards failed."""

from marin_resources.types.errors import MarinError


class ShardError(MarinError):
    """A shard failed: the sentence of its error, or of a bug its index, its function, the reason and its config."""
