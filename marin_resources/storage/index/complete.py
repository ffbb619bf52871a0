"""The complete outputs below a prefix: their markers by one listing, their records from packs.

In:  a prefix.   Out: markers, and records without the function's result.   Written: packs, where this process may.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from marin_resources.configuration.settings import normalize_prefix
from marin_resources.storage.completion import packs
from marin_resources.storage.completion import partition_markers as partitions
from marin_resources.storage.completion.markers import Mark, list_marks, seconds_of
from marin_resources.storage.completion.partition_markers import CompletionMarker
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.commit import recorded
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output, Status
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

THREADS = 32
WORTH_A_PACK = 2
"""Packs are read for so many records each, or more; fewer records are read one by one."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Request:
    """A request for the record of a marker."""

    file: str
    """File of the marker."""
    path: str
    """Path of the output."""
    finished_s: int
    attempt: int | None = None
    """None: the marker does not name it."""


class CompleteOutputs:
    """The complete outputs below a prefix, as they were listed at the first query of this object."""

    def __init__(self, prefix: str, *, writes: bool = True) -> None:
        """`writes`: whether packs, and the markers that outputs lack, may be written."""
        self.prefix = normalize_prefix(prefix)
        self.writes = writes
        self._records: packs.Records = {}
        self._packed: packs.Records | None = None

    @cached_property
    def marks(self) -> list[Mark]:
        """All markers, in no order. An output that was removed by hand still has one."""
        return list_marks(self.prefix)

    @cached_property
    def by_name(self) -> Mapping[str, list[Mark]]:
        """Name of a step -> the markers of its versions, the newest first."""
        marks: dict[str, list[Mark]] = {}
        for mark in sorted(self.marks, key=lambda mark: (-mark.finished_s, mark.version)):
            marks.setdefault(mark.name, []).append(mark)
        return marks

    def mark_of(self, output: Output) -> Mark | None:
        """The newest marker of this name and these six digits, of whatever identity."""
        marks = self.by_name.get(output.name, ())
        return next((mark for mark in marks if mark.version == output.version), None)

    def path_of(self, mark: Mark) -> str:
        """The path of a marker's output, unless its step has an override."""
        return join(self.prefix, f"{mark.name}-{mark.version}")

    def records(self, marks: Iterable[Mark], places: Mapping[Mark, str] | None = None) -> dict[Mark, Record]:
        """The records of these outputs. One whose record is gone, damaged, or of another attempt is left out.

        `places`: the paths of the outputs with an override.
        """
        at, distinct = places or {}, list(dict.fromkeys(marks))
        records = self._records_of(
            _Request(
                file=mark.file,
                path=at.get(mark) or self.path_of(mark),
                finished_s=mark.finished_s,
                attempt=mark.attempt,
            )
            for mark in distinct
        )
        return {mark: records[mark.file] for mark in distinct if mark.file in records}

    def records_of_partitions(self, done: Mapping[str, CompletionMarker]) -> dict[str, Record]:
        """Path -> the record of the partition with this marker. One whose record is gone, damaged, or of another
        attempt is left out."""
        records = self._records_of(
            _Request(file=marker.file, path=path, finished_s=marker.finished_s) for path, marker in done.items()
        )
        return {path: records[marker.file] for path, marker in done.items() if marker.file in records}

    def add(self, read: Mapping[str, Record]) -> None:
        """Keep records that were read one by one, by the file of their marker, and pack them if they are many.

        Without the right to write, the next plan reads them one by one again.
        """
        slim = {file: packs.slim(record) for file, record in read.items()}
        self._records.update(slim)
        if not self.writes:
            return
        try:
            packs.keep_packed(self.prefix, slim, self._names_of_packs, self._packed, self._list_live)
        except (OSError, UnavailableError) as error:
            log.info("records could not be packed below %s: %s", self.prefix, error)

    @cached_property
    def _names_of_packs(self) -> list[str]:
        return packs.names_of_packs(self.prefix)

    def _list_live(self) -> set[str]:
        return {*(mark.file for mark in self.marks), *partitions.list_files(self.prefix)}

    def _records_of(self, requests: Iterable[_Request]) -> packs.Records:
        by_file = {request.file: request for request in requests}
        self._read_packs([file for file in by_file if file not in self._records])
        unread = [request for file, request in by_file.items() if file not in self._records]
        if unread:
            self.add(self._read_one_by_one(unread))
        return {file: self._records[file] for file in by_file if file in self._records}

    def _read_packs(self, missing: list[str]) -> None:
        if not missing or self._packed is not None or len(missing) < WORTH_A_PACK * len(self._names_of_packs):
            return
        self._packed = packs.read_packs(self.prefix, self._names_of_packs)
        self._records = {**self._packed, **self._records}
        self.add({})  # joins the packs if they are too many

    def _read_one_by_one(self, requests: list[_Request]) -> packs.Records:
        paths = [request.path for request in requests]
        if is_local(self.prefix):  # threads would take longer to start
            records = list(map(_read, paths))
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                records = list(pool.map(_read, paths))
        both = zip(requests, records, strict=True)
        return {request.file: record for request, record in both if record is not None and _is_of(request, record)}


def _read(path: str) -> Record | None:
    try:
        return recorded(path, Status.SUCCESS)
    except ControlFileError:
        return None


def _is_of(request: _Request, record: Record) -> bool:
    """Whether the record is of the attempt that wrote the marker."""
    return seconds_of(record) == request.finished_s and request.attempt in (None, record.attempt or 0)
