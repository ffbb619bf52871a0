"""The error of a stage one of whose shards failed."""


class ShardError(RuntimeError):
    """A shard failed: one sentence with its index, its function, the reason and its config."""
