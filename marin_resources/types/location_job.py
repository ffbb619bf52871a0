"""The job of the code location that a run belongs to. The command imports this for each verb, so it has no weight."""

from __future__ import annotations

from dataclasses import dataclass

ALL_ASSETS = "__ASSET_JOB"
"""Dagster's job of all assets, of which a run materializes the selected ones."""


@dataclass(frozen=True, kw_only=True)
class LocationJob:
    """The job of the code location that a run materializes."""

    name: str
    """The name of an experiment, or ALL_ASSETS."""
    whole: bool
    """Whether all assets of the job are materialized, and not selected ones."""
