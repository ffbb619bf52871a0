"""The origin of a run: the job of the code location, by which the UI lists the run and can re-execute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LOCATION = "marin"
"""The name of the code location in workspace.yaml."""
DEFINITIONS = "marin_assets.definitions"
ALL_ASSETS = "__ASSET_JOB"
"""Dagster's job of all assets, of which a run materializes the selected ones."""


@dataclass(frozen=True, kw_only=True)
class LocationJob:
    """The job of the code location that a run materializes."""

    name: str
    """The name of an experiment, or ALL_ASSETS."""
    whole: bool
    """Whether all assets of the job are materialized, and not selected ones."""

    def origin(self, job: str) -> Any:
        """Dagster's RemoteJobOrigin of the job of this name: the experiment's own, or one of those that it has.

        Dagster reads names only, so the same origin fits every way of serving the code location.
        """
        from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
        from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
        from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

        location = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(module_name=DEFINITIONS), LOCATION)
        return RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME).get_job_origin(job)
