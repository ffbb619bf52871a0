"""Which Python of a node runs a step: one prebuilt environment has all of the step's extras."""

from __future__ import annotations

from collections.abc import Sequence

from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.environment.extras import MissingRequirementError, known_extras

DEFAULT_PYTHON = "python"
"""The one of the node's own Ray."""


def python_for(who: str, extras: Sequence[str], settings: ClusterSettings) -> str:
    """The path of the first environment that has all `extras`. Raises MissingRequirementError, that names `who`."""
    known = known_extras()
    for extra in extras:
        if extra not in known:
            raise MissingRequirementError(
                f"{who} asks for the extra {extra!r}, which pyproject.toml does not have. "
                f"Expected some of {', '.join(sorted(known))}."
            )
    if not settings.environments:
        return DEFAULT_PYTHON
    for python, has in settings.environments.items():
        if set(extras) <= set(has):
            return python
    there = "; ".join(f"{python} has {', '.join(has) or 'none'}" for python, has in settings.environments.items())
    raise MissingRequirementError(
        f"{who} asks for the extras {', '.join(extras)}, and no environment of the cluster has them all: {there}. "
        "Build one on the nodes, and name it in MARIN_CLUSTER_ENVIRONMENTS."
    )
