"""Dagster homes for tests: copies of one with empty databases.

Dagster takes 1.3 s to create the three SQLite databases of a home by its migrations. A copy takes 0.01 s.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from marin_resources.configuration.settings import project_root

if TYPE_CHECKING:
    import dagster as dg
    import pytest

YAML = "telemetry: {enabled: false}\n"


def new_home(path: Path) -> Path:
    """Create the folder `path`, a Dagster home that sends nothing anywhere."""
    return Path(shutil.copytree(_template(), path))


def laptop_home(path: Path) -> Path:
    """Likewise, with the settings of the laptop's dagster.yaml."""
    home = new_home(path)
    shutil.copy(project_root() / ".dagster/dagster.yaml", home)
    return home


@contextmanager
def deployed_instance(home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """An instance with the settings of a deployment on one machine; `home` is created."""
    import dagster as dg

    home.mkdir()
    shutil.copy(project_root() / "deploy/vm/dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("MARIN_PREFIX", str(home / "outputs"))
    monkeypatch.setenv("MARIN_POSTGRES_URL", postgres_url)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@contextmanager
def instance_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """The instance of a home that one of the functions above has created."""
    import dagster as dg

    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


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
