"""Outputs that are needed below a prefix, and the reasons: the roots of a collection.

experiments    every output that an experiment names whose last run is not too long ago
definitions    what the experiments of this code location reach, and what their configs name
pins           with what they were made from
aliases        data that an adopted output is
snapshots      the partitions that a snapshot lists
at work        what attempts read that hold their lease
damage         what was complete before an output whose record cannot be read: it may be made from it, adopt or list it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from marin_assets.documents.snapshots import read_snapshot
from marin_assets.inspection.gc.ancestors import made_from
from marin_assets.inspection.gc.experiment_files import ExperimentFile, experiment_files
from marin_assets.inspection.gc.retention import Retention
from marin_assets.inspection.gc.stored_outputs import Stored, StoredOutputs
from marin_assets.plan.sites.inputs import external_names, mirrored_names, urls_in
from marin_assets.step.graph import Graph
from marin_resources.storage.collect.pins import list_pins
from marin_resources.storage.output.notes.active_attempts import live_attempts
from marin_resources.storage.paths import join
from marin_resources.types.places import relative_to
from marin_resources.types.record import Record

SNAPSHOT_STAGE = "marin_assets.stages.snapshot."


@dataclass(frozen=True, kw_only=True)
class Roots:
    kept: Retention
    last_ran: Mapping[str, datetime]
    """Path below the prefix -> the last run of an experiment that names it, also of long ago."""

    def last_run(self, stored: Stored) -> datetime | None:
        """Time of the last run of an experiment that names the output, or the version of which it is a partition."""
        times = (self.last_ran.get(stored.relative), self.last_ran.get(stored.whole))
        return max((time for time in times if time is not None), default=None)


def find_roots(
    prefixes: tuple[str, ...], stored: StoredOutputs, graph: Graph, *, keep_days: float, now: datetime
) -> Roots:
    """The roots of the first of the prefixes. The others are of its regions: what they need is needed here too.

    Raises ControlFileError for a file without which they are not known, and UnavailableError.
    """
    retention = Retention(prefixes=prefixes)
    files = tuple(file for prefix in prefixes for file in experiment_files(prefix))
    for prefix in prefixes:  # first, as it changes fastest
        _keep_what_is_read(retention, prefix)
    for file in sorted(files, key=_when, reverse=True):  # of several reasons the newest counts
        if file.last_ran is None or now - file.last_ran < timedelta(days=keep_days):
            _keep_experiment(retention, file)
    _keep_definitions(retention, graph)
    for prefix in prefixes:
        _keep_pinned(retention, prefix, stored)
    _keep_snapshots(retention, stored)
    _keep_adopted(retention, stored)
    _keep_what_is_older(retention, stored)
    return Roots(kept=retention, last_ran=_last_runs(files))


def _when(file: ExperimentFile) -> datetime:
    """A file without the time always counts, so it is the newest."""
    return file.last_ran or datetime.max.replace(tzinfo=UTC)


def _last_runs(files: Iterable[ExperimentFile]) -> dict[str, datetime]:
    last_runs: dict[str, datetime] = {}
    for file in sorted((file for file in files if file.last_ran is not None), key=_when):
        last_runs |= dict.fromkeys(file.outputs, _when(file))
    return last_runs


def _keep_what_is_read(retention: Retention, prefix: str) -> None:
    for attempt in live_attempts(prefix):
        own = retention.relative(attempt.path)
        retention.keep(own, "at work", f"computed by {attempt.holder.describe()}")
        for path in attempt.reads:
            retention.keep(path, "at work", f"read by {own}, which is computed by {attempt.holder.describe()}")


def _keep_experiment(retention: Retention, file: ExperimentFile) -> None:
    ran = f"ran last on {file.last_ran.date().isoformat()}" if file.last_ran else "does not say when it ran"
    sentence = f"of the experiment {file.name!r}, which {ran}"
    for path in file.outputs:
        retention.keep(path, "by experiments", sentence, file.last_ran)
    retention.mention(file.texts, "by experiments", f"named in a config {sentence}", file.last_ran)


def _keep_definitions(retention: Retention, graph: Graph) -> None:
    for node in graph:
        retention.keep(node.output.relative(), "by definitions", f"the step {node.name!r} of this code location")
        read = f"read by the step {node.name!r} of this code location"
        for name in [*external_names(node), *mirrored_names(node)]:
            retention.keep(name, "by definitions", read)
        retention.mention(urls_in(node), "by definitions", read)


def _keep_pinned(retention: Retention, prefix: str, stored: StoredOutputs) -> None:
    for pin in list_pins(prefix):
        retention.keep(pin.output, "by pins", f"pinned by {pin.by}: {pin.why}")
        for path in [] if pin.alone else made_from(pin.output, stored, retention.prefixes):
            retention.keep(path, "by pins", f"{pin.output} was made from it, which is pinned by {pin.by}: {pin.why}")


def _keep_snapshots(retention: Retention, stored: StoredOutputs) -> None:
    """Keep the partitions of snapshots, also of collected ones: as long as a snapshot may come back, so must these."""
    for snapshot, record in _snapshots(stored):
        try:
            listed = read_snapshot(record.data_path or join(stored.prefix, snapshot))
        except FileNotFoundError:
            continue  # it was removed by hand, and its marker is left
        for partition in listed.values():
            retention.keep(partition.path, "by snapshots", f"listed by the snapshot {snapshot}")


def _snapshots(stored: StoredOutputs) -> Iterator[tuple[str, Record]]:
    """Path below the prefix and record of each."""
    yield from ((path, record) for path, record in stored.of_marks.items() if _is_snapshot(record))
    versions = {
        whole: [partition.relative for partition in partitions] for whole, partitions in stored.partitions_of.items()
    }
    for note in stored.collected:
        versions.setdefault(f"{note.name}-{note.version}", []).append(note.relative)
    firsts = stored.records(paths[0] for paths in versions.values())
    for paths in versions.values():
        if paths[0] not in firsts or _is_snapshot(firsts[paths[0]]):  # all partitions of a step have one function
            yield from ((path, record) for path, record in stored.records(paths).items() if _is_snapshot(record))


def _is_snapshot(record: Record) -> bool:
    return (record.fn_name or "").startswith(SNAPSHOT_STAGE)


def _keep_adopted(retention: Retention, stored: StoredOutputs) -> None:
    """Keep the data of adopted outputs, wherever they are; one without a marker is found if something else keeps it."""
    without_marker = [
        path for path in retention.paths() if path not in stored.by_path and path not in stored.partitions_of
    ]
    notes = [note.relative for note in stored.collected]
    for path, record in {**stored.of_marks, **stored.records([*without_marker, *notes])}.items():
        if record.adopted and record.data_path:
            bases = [prefix for prefix in (record.prefix, *retention.prefixes) if prefix]
            data = relative_to(record.data_path, bases) or record.data_path
            retention.keep(data, "by adoptions", f"adopted as {path}")
            retention.keep(path, "by adoptions", f"adopted from {record.data_path}")


def _keep_what_is_older(retention: Retention, stored: StoredOutputs) -> None:
    if not stored.unknown:
        return
    newest = max(stored.unknown, key=stored.finished_s)
    limit_s = stored.finished_s(newest)
    for output in stored.all:
        if output.finished_s <= limit_s:
            retention.keep(output.relative, "by damage", f"complete before {newest}, whose record cannot be read")
