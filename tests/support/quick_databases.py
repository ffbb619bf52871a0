"""Dagster's SQLite databases in a process of tests: opened without reading all migrations, written without an fsync.

Whenever a process opens a database (each run has one), Dagster (1.13.29) makes alembic execute its 100 scripts, to
learn the name of the newest: a quarter of the time of the tests with an instance. An fsync is for a machine that loses
its power; what a killed process has written is there without one.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import event
from sqlalchemy.engine import Engine

AS_IT_IS = ScriptDirectory.from_config


def quicken() -> None:
    """From now on, a folder of scripts is read when it is first needed, and no commit waits for the disk."""

    @cache
    def scripts_at(location: str) -> ScriptDirectory:
        config = Config()
        config.set_main_option("script_location", location)
        return AS_IT_IS(config)

    def from_config(config: Any) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        return AS_IT_IS(config) if location is None else scripts_at(location)

    ScriptDirectory.from_config = from_config
    event.listen(Engine, "connect", _without_fsync)


def _without_fsync(connection: Any, _: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")
