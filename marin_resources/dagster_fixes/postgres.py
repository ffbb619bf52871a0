"""Dagster's Postgres storages for a deployment: a run waits for a database that is away, and continues.

As published (dagster-postgres 0.29.27) a connection is tried for 6 s. A run whose step ends while Postgres is restarted
then fails, though its output is complete. Here a process that executes a run waits up to 15 minutes. Every other
process, such as the webserver, gives its error at once as before, and tries again by its own means.

    run_storage:        {module: marin_resources.dagster_fixes.postgres, class: RetryingRunStorage, config: …}
    event_log_storage:  likewise, RetryingEventLogStorage
    schedule_storage:   likewise, RetryingScheduleStorage

A webserver keeps some connections open: a page of the UI sends up to six queries at once, and a connection costs ten
times the query. As published it keeps one. A connection that was cut meanwhile is replaced before it is used.

`config` is that of Dagster's own classes. An event whose transaction was cut is stored again: if only the answer was
lost, the run's log has it twice.

See dagster-io/dagster#33886 and dagster-io/dagster#21209, a setting for the retries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from dagster import DagsterEvent, EventLogEntry
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage
from dagster_postgres.utils import create_pg_engine, get_token_provider_from_config, pg_url_from_config
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from marin_resources.dagster_fixes.event_batches import StoresBatches
from marin_resources.dagster_fixes.failure_order import FailuresAfterStatus
from marin_resources.dagster_fixes.partition_keys import ValidatesPartitionKeys
from marin_resources.dagster_fixes.partition_wipes import WipesPartitions
from marin_resources.dagster_fixes.retry_policy import retry_timeout_s

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
KEPT_CONNECTIONS = 5
"""Open connections of each storage in a webserver."""
T = TypeVar("T")

log = logging.getLogger(__name__)


class _Retrying:
    """To be mixed into a storage of dagster-postgres, before its class."""

    _engine: Engine
    _token_provider: Any
    postgres_url: str

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Any:
        create: Any = cls
        return create(
            inst_data=inst_data,
            postgres_url=pg_url_from_config(config_value),
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
            token_provider=get_token_provider_from_config(config_value),
        )

    def optimize_for_webserver(self, statement_timeout: int, pool_recycle: int, max_overflow: int) -> None:
        options = f"{self._engine.url.query.get('options', '')} -c statement_timeout={statement_timeout}"
        self._engine = create_pg_engine(
            self.postgres_url,
            self._token_provider,
            isolation_level="AUTOCOMMIT",
            pool_size=KEPT_CONNECTIONS,
            pool_pre_ping=True,
            pool_recycle=pool_recycle,
            max_overflow=max_overflow,
            connect_args={"options": options},
        )

    @contextmanager
    def connect(self, run_id: str | None = None) -> Iterator[Connection]:
        connection = _retry_while_unavailable(self._engine.connect)
        try:
            yield connection
        finally:
            connection.close()

    _connect = connect


class RetryingRunStorage(_Retrying, PostgresRunStorage):  # type: ignore[misc]
    def handle_run_event(self, run_id: str, event: DagsterEvent, update_timestamp: Any = None) -> None:
        _retry_while_unavailable(
            lambda: super(RetryingRunStorage, self).handle_run_event(run_id, event, update_timestamp)
        )


class RetryingEventLogStorage(  # type: ignore[misc]
    FailuresAfterStatus, _Retrying, StoresBatches, WipesPartitions, ValidatesPartitionKeys, PostgresEventLogStorage
):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.enable()
        self._asset_columns: set[str] = set()
        """Columns that the table of assets was seen to have. None is removed while a process lives."""
        super().__init__(*arguments, **options)

    def has_asset_key_col(self, column_name: str) -> bool:
        return column_name in self._asset_columns or super().has_asset_key_col(column_name)

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        """Whether the table has the column. Dagster queries that with each event and each request about an asset."""
        if column_name not in self._asset_columns and super()._has_asset_key_col_on_connection(conn, column_name):
            self._asset_columns.add(column_name)
        return column_name in self._asset_columns

    def store_event(self, event: EventLogEntry) -> None:
        _retry_while_unavailable(lambda: super(RetryingEventLogStorage, self).store_event(event))

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        kept = [event for event in events if not event.get_dagster_event().is_asset_failed_to_materialize]
        _retry_while_unavailable(lambda: super(RetryingEventLogStorage, self).store_event_batch(kept))


class RetryingScheduleStorage(_Retrying, PostgresScheduleStorage):  # type: ignore[misc]
    pass


def _retry_while_unavailable(act: Callable[[], T]) -> T:
    """The result of `act`, which is retried while the database is away, until the retry timeout."""
    began_s, pause_s = time.monotonic(), FIRST_PAUSE_S
    while True:
        try:
            return act()
        except DBAPIError as error:
            waited_s = time.monotonic() - began_s
            if not _is_unavailable(error) or waited_s + pause_s > retry_timeout_s():
                raise
            if pause_s == FIRST_PAUSE_S:
                log.warning("Dagster's database is away (%s); this run waits for it.", _first_line(error))
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _is_unavailable(error: DBAPIError) -> bool:
    """Whether the connection was refused or cut: not an error of the statement."""
    refused = isinstance(error, OperationalError) and getattr(error.orig, "pgcode", None) is None
    shutting_down = str(getattr(error.orig, "pgcode", "") or "").startswith(("57P", "08"))
    return error.connection_invalidated or refused or shutting_down


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().split("\n")[0]
