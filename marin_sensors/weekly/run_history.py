"""The runs of some days, by Dagster's history: materializations of each asset, runs that ended, runs that failed.

A materialization is read for its metadata `reused` and `compute_s`, and for those of its tries on slices. One without
`reused`, as of an asset that is no step, counts as computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from marin_sensors.runs.failure_cause import read_failed_run

AT_ONCE = 1000
"""Materializations that one query reads."""
TRIED = ("slices_waited_s", "startup_s", "kept_s", "lost_s")
"""The metadata of a step on slices."""


@dataclass(kw_only=True)
class Ran:
    """An asset."""

    computed: int = 0
    reused: int = 0
    failed: int = 0
    """Times that its step failed in a run."""
    compute_s: float = 0.0
    """Seconds of computing."""
    kept_s: float = 0.0
    """Seconds of computing on slices: work that is in the outputs."""
    tried_s: float = 0.0
    """All that its tries took: also waiting, startup, and work that was lost."""

    @property
    def goodput(self) -> float | None:
        """Goodput of its tries on slices, between 0 and 1; None without any."""
        return self.kept_s / self.tried_s if self.tried_s else None


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A run that failed."""

    run_id: str
    ended_s: float
    name: str
    """The assets that failed, or the run's job."""
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Week:
    runs: int
    """That ended, however."""
    failed: Sequence[Failed]
    """Without those that Dagster has launched again; the last first."""
    assets: dict[str, Ran] = field(default_factory=dict)
    """By key."""


def read_week(instance: dg.DagsterInstance, since: datetime, until: datetime, but: dg.AssetKey) -> Week:
    """The runs and assets after `since` and before `until`, but for one asset."""
    assets = {key.to_user_string(): ran for key, ran in _materialized(instance, since, until, but)}
    in_time = dg.RunsFilter(updated_after=since.astimezone(UTC), created_before=until.astimezone(UTC))
    ended = [
        record
        for record in instance.get_run_records(in_time)
        if record.end_time is not None and since.timestamp() < record.end_time < until.timestamp()
    ]
    failed = []
    for record in ended:
        run = record.dagster_run
        if run.status is dg.DagsterRunStatus.FAILURE and "dagster/auto_retry_run_id" not in run.tags:
            why = read_failed_run(instance, run.run_id)
            names = sorted(key.to_user_string() for key in why.assets)
            for name in names:
                assets.setdefault(name, Ran()).failed += 1
            label = ", ".join(names or why.steps) or run.job_name
            assert record.end_time is not None
            failed.append(Failed(run_id=run.run_id, ended_s=record.end_time, name=label, sentence=why.sentence))
    failed.sort(key=lambda failure: -failure.ended_s)
    return Week(runs=len(ended), failed=failed, assets=assets)


def _materialized(
    instance: dg.DagsterInstance, since: datetime, until: datetime, but: dg.AssetKey
) -> Iterator[tuple[dg.AssetKey, Ran]]:
    """Each asset that was materialized. Its materializations are read in pages: their metadata may have plots."""
    for record in instance.get_asset_records():
        key, last = record.asset_entry.asset_key, record.asset_entry.last_materialization_record
        if key == but or last is None or last.timestamp <= since.timestamp():
            continue
        records_filter = dg.AssetRecordsFilter(
            key, after_timestamp=since.timestamp(), before_timestamp=until.timestamp()
        )
        ran, cursor, more = Ran(), None, True
        while more:
            page = instance.fetch_materializations(records_filter, limit=AT_ONCE, cursor=cursor)
            for materialization in page.records:
                _add(ran, materialization.asset_materialization)
            cursor, more = page.cursor, page.has_more
        if ran.computed or ran.reused:
            yield key, ran


def _add(ran: Ran, event: dg.AssetMaterialization | None) -> None:
    metadata: Mapping[str, dg.MetadataValue] = event.metadata if event is not None else {}
    reused = metadata.get("reused")
    if reused is not None and reused.value is True:
        ran.reused += 1
        return
    ran.computed += 1
    ran.compute_s += _seconds(metadata, "compute_s")
    ran.kept_s += _seconds(metadata, "kept_s")
    ran.tried_s += sum(_seconds(metadata, name) for name in TRIED)


def _seconds(metadata: Mapping[str, dg.MetadataValue], name: str) -> float:
    seconds = metadata.get(name)
    return float(seconds.value) if seconds is not None and isinstance(seconds.value, int | float) else 0.0
