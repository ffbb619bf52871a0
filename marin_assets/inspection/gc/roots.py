"""Outputs that are needed below a prefix, and the reasons: the roots of a collection.

experiments    every output that an experiment names whose last run is not too long ago
definitions    what the experiments of this code location reach, and what their configs name
pins           with what they were made from
aliases        data that an adopted output is
snapshots      the partitions that a snapshot lists
at work        what attempts read that hold their lease
damage         what was complete before an output whose record cannot be read: it may be made from it, adopt or list it

An experiment is a file `experiments/*.json` below the prefix: each run writes its own over the earlier one of the same
steps. Marin writes them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from marin_assets.documents.snapshots import read_snapshot
from marin_assets.inspection.gc.ancestors import made_from
from marin_assets.inspection.gc.retention import Retention
from marin_assets.inspection.gc.stored_outputs import Stored, StoredOutputs
from marin_assets.plan.sites.inputs import external_names, mirrored_names, urls_in
from marin_assets.step.graph import Graph
from marin_resources.storage.collect.pins import list_pins
from marin_resources.storage.control import control
from marin_resources.storage.files import names_in
from marin_resources.storage.output.notes.active_attempts import live_attempts
from marin_resources.storage.paths import join
from marin_resources.types.places import relative_to
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson
from marin_resources.wire.config_json import texts_in

SNAPSHOT_STAGE = "marin_assets.stages.snapshot."


FOLDER = "experiments"
SUFFIX = ".json"
THREADS = 32


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


class ExperimentFileError(ControlFileError):
    """A file of an experiment that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="file of an experiment",
    newest=1,
    error=ExperimentFileError,
    default=0,
    shape={"prefix": str, "created_date": str, "steps": Required([{"output_path": str, "dependencies": [str]}])},
    if_damaged="Without it nobody knows what it needs. Look at the file; move it aside if it is damaged.",
)


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    """An experiment, as its last run has written it."""

    name: str
    """Name of the file, without its suffix."""
    last_ran: datetime | None
    """None if the file does not have it."""
    outputs: tuple[str, ...]
    """Paths of its steps' outputs, below the prefix."""
    texts: tuple[str, ...]
    """Every text in its steps: paths that they read may be among them."""


def experiment_files(prefix: str) -> list[ExperimentFile]:
    """All files of the prefix, by one listing and a read of each. Raises ExperimentFileError and UnavailableError."""
    names = sorted(name for name in names_in(join(prefix, FOLDER)) if name.endswith(SUFFIX))
    with ThreadPoolExecutor(THREADS) as pool:
        files = pool.map(lambda name: _read(prefix, name), names)
        return [file for file in files if file is not None]


def _read(prefix: str, name: str) -> ExperimentFile | None:
    path = join(prefix, FOLDER, name)
    content = control.read(path)
    if content is None:
        return None  # it was removed in between
    fields = FORMAT.parse(content.data, path)
    prefixes = [base for base in (fields.get("prefix"), prefix) if base]
    return ExperimentFile(
        name=name.removesuffix(SUFFIX),
        last_ran=_time_of(fields.get("created_date")),
        outputs=tuple(relative_to(output, prefixes) or output for output in _output_paths(fields)),
        texts=tuple(sorted({relative_to(text, prefixes) or text for text in texts_in(fields["steps"])})),
    )


def _output_paths(fields: Mapping[str, Any]) -> Iterator[str]:
    for step in fields["steps"]:
        if step.get("output_path"):
            yield step["output_path"].rstrip("/")


def _time_of(text: str | None) -> datetime | None:
    """Marin writes a time without a zone."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
