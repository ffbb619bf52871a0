"""Dagster's SQLite event log with open connections. Its rows and files stay the same.

As published (1.13.27) Dagster creates a SQLAlchemy engine for every event: it reuses no compiled statement, and closing
the last connection writes the whole log to disk. Measured on 2 cores, 100 complete steps take 8 to 14 s to report; with
open connections, and one fsync per checkpoint in place of one per event, 2 s. Events survive the death of the process
as before. A power failure can lose the last events of a run, never an output.

No issue is known for the cost of an event. Without this, a run of many small steps waits for its log.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

from marin_resources.dagster_fixes.databases import (
    BUSY_TIMEOUT_S,
    OPTIONAL_BASE_DIR,
    SqliteEventLogStorage,
    ensure_database,
    is_complete,
)
from marin_resources.dagster_fixes.event_batches import EVENTS, StoresBatches
from marin_resources.dagster_fixes.failure_order import FailuresAfterStatus
from marin_resources.dagster_fixes.partition_keys import ValidatesPartitionKeys
from marin_resources.dagster_fixes.partition_wipes import WipesPartitions

KEPT = 8
"""Open databases: one for each run, and the index. A web server reads more runs than this, one after the other."""


class PooledSqliteEventLogStorage(
    StoresBatches, WipesPartitions, ValidatesPartitionKeys, FailuresAfterStatus, SqliteEventLogStorage
):
    """`event_log_storage` of a dagster.yaml. The default of `base_dir` is Dagster's: DAGSTER_HOME/history/runs."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self.enable()
        self._kept: OrderedDict[tuple[str, int], Engine] = OrderedDict()
        super().__init__(base_dir, inst_data)

    @classmethod
    def config_type(cls) -> Any:
        return OPTIONAL_BASE_DIR

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> PooledSqliteEventLogStorage:
        base_dir = config_value.get("base_dir") or os.path.join(os.environ["DAGSTER_HOME"], "history", "runs")
        ensure_database("SqliteEventLogStorage", base_dir)
        return cls(base_dir, inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        if shard not in self._initialized_dbs or not os.path.exists(self.path_for_shard(shard)):
            self._initialized_dbs.discard(shard)
            if is_complete(Path(self.path_for_shard(shard))):
                self._initialized_dbs.add(shard)
            else:
                with super()._connect(shard):  # creates the database and its tables
                    pass
        with self._db_lock, self._engine(shard).connect() as connection, connection.begin():
            yield connection

    def delete_events(self, run_id: str) -> None:
        """Delete the events of a run, and the database of its log: Dagster leaves it, as large as it was."""
        super().delete_events(run_id)
        path = self.path_for_shard(run_id)
        for kept in [key for key in self._kept if key[0] == run_id]:
            self._kept.pop(kept).dispose()
        for file in (path, f"{path}-wal", f"{path}-shm"):
            Path(file).unlink(missing_ok=True)

    def _store_in_log_of_run(self, run_id: str, rows: Sequence[dict[str, Any]]) -> None:
        with self.run_connection(run_id) as connection:
            connection.execute(EVENTS.insert(), rows)

    def _engine(self, shard: str) -> Engine:
        """The engine of a database, by inode: a replaced file is another database."""
        key = (shard, os.stat(self.path_for_shard(shard)).st_ino)
        if key not in self._kept:
            self._kept[key] = engine = create_engine(
                self.conn_string_for_shard(shard), pool_size=1, connect_args={"timeout": BUSY_TIMEOUT_S}
            )
            event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=NORMAL"))
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)[1].dispose()
        return self._kept[key]

    def dispose(self) -> None:
        super().dispose()
        while self._kept:
            self._kept.popitem()[1].dispose()
