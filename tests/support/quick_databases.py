"""Dagster's SQLite databases in a process of tests: opened without reading all migrations, by engines that are kept,
written without an fsync.

Whenever a process opens a database (each run has one), Dagster (1.13.29) makes alembic execute its 100 scripts, to
learn the name of the newest: a quarter of the time of the tests with an instance. Whenever it connects to one, Dagster
creates an engine, which compiles each statement again: a fifth of what is left. An fsync is for a machine that loses
its power; what a killed process has written is there without one.
"""

from __future__ import annotations

import sqlite3
from functools import cache, lru_cache
from typing import Any

import sqlalchemy
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool

AS_IT_IS = ScriptDirectory.from_config
KEPT = 50
"""So many engines: an engine without a pool has no connection while nobody uses it."""


def quicken() -> None:
    """From now on, a folder of scripts is read when it is first needed, a database has one engine, and no commit waits
    for the disk. Call it before Dagster is imported, whose modules keep the function that creates engines."""

    @cache
    def scripts_at(location: str) -> ScriptDirectory:
        config = Config()
        config.set_main_option("script_location", location)
        return AS_IT_IS(config)

    def from_config(config: Any) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        return AS_IT_IS(config) if location is None else scripts_at(location)

    ScriptDirectory.from_config = from_config
    sqlalchemy.create_engine = _kept_engines(sqlalchemy.create_engine)
    event.listen(Engine, "connect", _without_fsync)


def _without_fsync(connection: Any, _: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


def _kept_engines(create_engine: Any) -> Any:
    """The function, which returns the engine of an earlier call for the same database of SQLite without a pool."""

    @lru_cache(KEPT)
    def kept(url: str, **timeout: float) -> Engine:
        return create_engine(url, poolclass=NullPool, **({"connect_args": timeout} if timeout else {}))

    def create(url: Any, **options: Any) -> Engine:
        connect_args = options.get("connect_args", {})
        is_plain = options.keys() <= {"poolclass", "connect_args"} and connect_args.keys() <= {"timeout"}
        if is_plain and options.get("poolclass") is NullPool and str(url).startswith("sqlite:"):
            return kept(str(url), **connect_args)
        return create_engine(url, **options)

    return create
