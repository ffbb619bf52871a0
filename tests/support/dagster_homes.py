"""Dagster homes for tests: copies of one with empty databases.

Dagster takes 1.3 s to create the three SQLite databases of a home by its migrations. A copy takes 0.01 s.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from marin_resources.settings import project_root

YAML = "telemetry: {enabled: false}\n"


def new_home(path: Path) -> Path:
    """Create the folder `path`, a Dagster home that sends nothing anywhere."""
    return Path(shutil.copytree(_template(), path))


def laptop_home(path: Path) -> Path:
    """Likewise, with the settings of the laptop's dagster.yaml."""
    home = new_home(path)
    shutil.copy(project_root() / ".dagster/dagster.yaml", home)
    return home


@cache
def _template() -> Path:
    """The home that this process copies. It is removed with the process."""
    import dagster as dg

    home = Path(_folder().name)
    (home / "dagster.yaml").write_text(YAML)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.get_runs_count()
        instance.all_asset_keys()
        instance.all_instigator_state()
    return home


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="dagster-home-")
