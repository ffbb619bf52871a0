"""The instance at DAGSTER_HOME, for the verbs of `marin instance`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from marin_resources.settings import ensure_dagster_home, project_root

if TYPE_CHECKING:
    import dagster as dg


def home_of_instance() -> Path:
    """DAGSTER_HOME, which may not exist yet. Raises SettingError."""
    given = os.environ.get("DAGSTER_HOME") or str(project_root() / ".dagster")
    return Path(os.path.abspath(os.path.expanduser(given)))


@contextmanager
def opened_instance() -> Iterator[tuple[dg.DagsterInstance, Path]]:
    """The instance and its home. Raises SettingError."""
    from marin_resources.orchestrator.databases import open_instance  # late, for its weight

    home = Path(ensure_dagster_home())
    with open_instance() as instance:
        yield instance, home
