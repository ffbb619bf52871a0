"""Choose the Python of a node that runs a step: one prebuilt environment has all of the step's extras."""

from __future__ import annotations

from collections.abc import Sequence

from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.environment.extras import MissingRequirementError, known_extras

DEFAULT_PYTHON = "python"
"""The Python of the node's own Ray."""


def python_for(who: str, extras: Sequence[str], settings: ClusterSettings) -> str:
    """Return the path of the first environment that has all `extras`.

    Raise MissingRequirementError, whose sentence begins with `who`, for an unknown extra or if no environment has all.
    """
    known = known_extras()
    for extra in extras:
        if extra not in known:
            raise MissingRequirementError(
                f"{who} requests the extra {extra!r}, which pyproject.toml does not have. "
                f"Expected some of {', '.join(sorted(known))}."
            )
    if not settings.environments:
        return DEFAULT_PYTHON
    for python, available in settings.environments.items():
        if set(extras) <= set(available):
            return python
    choices = "; ".join(f"{python} has {', '.join(has) or 'none'}" for python, has in settings.environments.items())
    raise MissingRequirementError(
        f"{who} requests the extras {', '.join(extras)}, and no environment of the cluster has them all: {choices}. "
        "Build one on the nodes, and name it in MARIN_CLUSTER_ENVIRONMENTS."
    )
