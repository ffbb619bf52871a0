"""Errors of a cluster and its dashboard: each is one sentence without the token."""

from __future__ import annotations

from marin_resources.types.errors import MarinError


class ClusterError(MarinError):
    """Base of the final errors. A caller can show the sentence as it is."""


class UnreachableError(MarinError, ConnectionError):
    """No usable response: refused, timed out, a gateway's 5xx. A retry may succeed."""


class OutageError(ClusterError):
    """The cluster was unreachable for longer than the outage timeout."""


class RefusedError(ClusterError):
    """The cluster requires a token, or rejects the one that was sent."""


class NoSuchJobError(ClusterError):
    """The cluster has no job of this id."""


class NoSuchPackageError(MarinError):
    """The cluster has no package of this name."""


class JobExistsError(ClusterError):
    """The cluster already has a job of this id."""


class ApiError(ClusterError):
    """The server rejects the request, or is not a Ray dashboard. A retry changes nothing."""
