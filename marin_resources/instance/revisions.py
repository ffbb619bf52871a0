"""The revisions of Dagster's tables: what the databases have, and what the installed Dagster expects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True, kw_only=True)
class Revision:
    what: str
    """ "runs", "events" or "ticks"."""
    found: str
    expected: str
    """The newest that the installed Dagster has."""

    @property
    def is_newest(self) -> bool:
        return self.found == self.expected

    @property
    def is_known(self) -> bool:
        return self.found in known_revisions()


def revisions_of(instance: dg.DagsterInstance) -> Iterator[Revision]:
    storages = {"runs": instance.run_storage, "events": instance.event_log_storage, "ticks": instance.schedule_storage}
    for database, storage in storages.items():
        version = storage.alembic_version() if storage is not None else None
        if version is not None:
            yield Revision(what=database, found=str(version[0]), expected=str(version[1]))


@cache
def known_revisions() -> frozenset[str]:
    """All revisions that the installed Dagster has ever had. A newer release knows more."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    from marin_resources.dagster_fixes.databases import MIGRATIONS

    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    return frozenset(script.revision for script in ScriptDirectory.from_config(config).walk_revisions())
