"""The reasons for which a run ends before its steps do."""

from __future__ import annotations

import enum


class Interruption(enum.Enum):
    """Why a run ends before its steps do. The value begins a sentence of the run's log."""

    TERMINATED = "Terminated on request"
    """In the UI, or with Dagster's API."""
    CTRL_C = "Interrupted by Ctrl-C"
    SIGTERM = "Interrupted by SIGTERM"
    """As in a redeployment: the work is still wanted."""
