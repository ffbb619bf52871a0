"""Choose the Python of a node that runs a step: one prebuilt environment has all of the step's extras."""

from __future__ import annotations

from collections.abc import Sequence

from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.environment.extras import MissingRequirementError, unknown_extras
from marin_resources.ray_tpu.requirements import MissingRequirement

DEFAULT_PYTHON = "python"
"""The Python of the node's own Ray."""


def python_for(requester: str, extras: Sequence[str], settings: ClusterSettings) -> str:
    """Return the path of the first environment that has all `extras`.

    Raise MissingRequirementError, whose sentence begins with `requester`, for an unknown extra or if no environment
    has all.
    """
    if missing := missing_in_python(extras, settings):
        raise MissingRequirementError(f"{requester} {missing[0].phrase}")
    return _find(extras, settings) or DEFAULT_PYTHON


def missing_in_python(extras: Sequence[str], settings: ClusterSettings) -> tuple[MissingRequirement, ...]:
    """Return the unknown extras, or that no environment has all of them; none if one has."""
    if (unknown := unknown_extras(extras)) or not settings.environments or _find(extras, settings):
        return unknown
    choices = "; ".join(f"{python} has {', '.join(has) or 'none'}" for python, has in settings.environments.items())
    thing = f"the extras {', '.join(extras)}, and no environment of the cluster has them all: {choices}"
    remedy = "Build one on the nodes, and name it in MARIN_CLUSTER_ENVIRONMENTS."
    return (MissingRequirement(verb="requests", what=thing, remedy=remedy),)


def _find(extras: Sequence[str], settings: ClusterSettings) -> str | None:
    return next((python for python, has in settings.environments.items() if set(extras) <= set(has)), None)
