"""What can go wrong between us and a Ray dashboard: each error is one sentence, and never holds a token."""

from __future__ import annotations

from marin_resources.ray_tpu.cluster.errors import ClusterError


class UnreachableError(ConnectionError):
    """The cluster does not answer now, or not sensibly: refused, timed out, a gateway's 5xx. It may later."""


class RefusedError(ClusterError):
    """It asks for a token, or for another one."""


class NoSuchJobError(ClusterError):
    """It has no job of this id."""


class NoSuchPackageError(RuntimeError):
    """It has no package of this name."""


class JobExistsError(ClusterError):
    """It has a job of this id already."""


class ApiError(ClusterError):
    """It understood and says no, or it is no Ray dashboard that jobs can be given to. Asking again changes nothing."""
