"""All materializations of a step that records know: of every version, in place or removed, also failed ones.

In:  a prefix, and a step's name, which need not be in the code any more.   Out: materializations, the newest first.

One listing finds the versions in place, another one those that are removed; then each record is read.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from marin_assets.plan.reasons.read_inputs import path_of
from marin_resources.storage.files import folders_in
from marin_resources.storage.output.commit import readable_record
from marin_resources.storage.output.notes.history import past_records, past_versions
from marin_resources.storage.output.record import FORMAT_VERSION
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Status
from marin_resources.types.partition_key import segment_of
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

VERSION = re.compile(r"[0-9a-f]{6}")
RUN = re.compile(r"[0-9a-f]{8}[0-9a-f-]*")
"""A Dagster run's id, or the first eight digits of it, as pages show it."""
THREADS = 16
log = logging.getLogger(__name__)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class NoMaterializationError(MarinError, ValueError):
    """No such materialization is known: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Materialization:
    """One output that was computed, or whose last attempt failed, according to its record."""

    record: Record
    path: str
    version: str
    """The six digits."""
    complete: bool
    removed: bool = False
    """Whether its record is all that is left."""

    @property
    def finished(self) -> datetime | None:
        """Time of its end; None for a record of Marin's, which lacks it."""
        text = self.record.finished_at
        return datetime.fromisoformat(text) if text else None

    @property
    def attempt(self) -> int:
        return self.record.attempt or 0


def materializations(
    prefix: str,
    name: str,
    key: str | None = None,
    elsewhere: Iterable[str] = (),
    report: Callable[[str], None] = log.warning,
) -> list[Materialization]:
    """The newest first. `key`: of this partition; `elsewhere`: paths of outputs with an override.

    `report` gets a sentence for each damaged file. If no other file has the record, its output is left out. Raises
    UnavailableError.
    """
    below = "" if key is None else f"/{segment_of(key)}"
    paths = [f"{join(prefix, version)}{below}" for version in versions_in_place(prefix, name)]
    with ThreadPoolExecutor(THREADS) as pool:
        in_place = list(pool.map(lambda path: _in_place(path, report), dict.fromkeys([*paths, *elsewhere])))
    outputs = [output for output in in_place if output is not None]
    for version in past_versions(prefix, name):
        for record in past_records(prefix, f"{version}{below}"):
            path = str(record.output_path or f"{join(prefix, version)}{below}")
            outputs.append(_of(record, path, complete=True, removed=True))
    distinct: dict[Any, Materialization] = {}
    for output in outputs:
        distinct.setdefault((output.version, output.finished), output)  # what is in place again, after it was removed
    return sorted(distinct.values(), key=lambda output: output.finished or LONG_AGO, reverse=True)


def versions_in_place(prefix: str, name: str) -> list[str]:
    """The paths "<name>-<version>" of the step's folders below the prefix, by one listing."""
    parent, _, last = name.rpartition("/")
    folders = folders_in(join(prefix, parent) if parent else prefix)
    matching = (folder for folder in folders if folder[:-6] == f"{last}-" and VERSION.fullmatch(folder[-6:]))
    return sorted(f"{parent}/{folder}" if parent else folder for folder in matching)


def newest_at(history: Sequence[Materialization], at: str) -> Materialization:
    """The newest materialization of a version, of a Dagster run, or until a day or a time (UTC by default).

    Raises NoMaterializationError.
    """
    of_version = [output for output in history if output.version == at]
    of_run = [output for output in history if str(output.record.dagster_run_id or "").startswith(at)]
    if of_version or (of_run and RUN.fullmatch(at)):
        return (of_version or of_run)[0]
    until = _end_of(at)
    earlier = [
        output for output in history if until is not None and output.finished is not None and output.finished < until
    ]
    if earlier:
        return earlier[0]
    versions = ", ".join(dict.fromkeys(output.version for output in history))
    raise NoMaterializationError(
        f"No materialization of the step is known at {at!r}, of the versions {versions}. Expected the six digits of a "
        "version, the id of a Dagster run, or a date such as 2026-01-31; --list shows all that are known."
    )


def _end_of(at: str) -> datetime | None:
    """The end of a day, or just after a time; None if it is neither."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment + (timedelta(days=1) if len(at) == len("2026-01-31") else timedelta(seconds=1))


def _in_place(path: str, report: Callable[[str], None]) -> Materialization | None:
    """The output at the path; None if no attempt has ended there, or its record is damaged."""
    status: Status | None = None
    try:
        status = read_status(path)
    except ControlFileError as error:  # of another version, perhaps: the others can be explained
        report(str(error))
    record, damage = readable_record(path, Status.SUCCESS)
    if damage:
        report(damage)
    if record is None:
        return None
    complete = status is Status.SUCCESS or bool(record.manifest)
    return _of(record, path, complete=complete, removed=complete and status is not Status.SUCCESS)


def _of(record: Record, path: str, *, complete: bool, removed: bool = False) -> Materialization:
    if record.manifest:  # of ours, if it is a copy without
        record = Record.from_dict({"format_version": FORMAT_VERSION, **record.to_dict()})
    whole = path_of(record.version) if record.version else path
    return Materialization(record=record, path=path, version=whole[-6:], complete=complete, removed=removed)
