"""What a cluster, or the way to it, refuses: each is one sentence."""


class ClusterError(RuntimeError):
    """Base of these, for whoever only passes the sentence on."""
