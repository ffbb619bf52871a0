"""The instance at DAGSTER_HOME, for the verbs of `marin instance`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from marin_resources.configuration.settings import SettingError, dagster_home, ensure_dagster_home

if TYPE_CHECKING:
    import dagster as dg


@contextmanager
def opened_instance() -> Iterator[tuple[dg.DagsterInstance, Path]]:
    """The instance and its home. Raises SettingError, also for a database that cannot be read in the block."""
    from marin_resources.dagster_fixes.databases import open_instance  # late, for its weight

    home = Path(ensure_dagster_home())
    with in_sentences(), open_instance() as instance:
        yield instance, home


@contextmanager
def in_sentences() -> Iterator[None]:
    """Raise SettingError for a dagster.yaml or a database that cannot be read in the block."""
    # late, for their weight
    import sqlite3

    from dagster import DagsterError
    from sqlalchemy.exc import SQLAlchemyError
    from yaml import YAMLError

    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, YAMLError, DagsterError) as error:
        why = " ".join(str(error).split())[:300]
        raise SettingError(
            f"The instance at {dagster_home()!r} cannot be read ({type(error).__name__}: {why}). See what is wrong: "
            "marin doctor dagster"
        ) from error
