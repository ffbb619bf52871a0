"""The whole versions of outputs by their paths "<name>-<version>", as records hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.commit import readable_record
from marin_resources.storage.output.notes.history import past_records
from marin_resources.storage.paths import join
from marin_resources.types.output import Status

READ_ONE_BY_ONE = 8
"""Records that are read by themselves. A longer chain needs more: then all complete outputs are read together."""


class RecordedVersions:
    """Reads versions below a prefix; each once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[str, Mapping[str, Any] | None] = {}
        self._all = False

    def __call__(self, relative: str) -> Mapping[str, Any] | None:
        """The version of the output, in place or removed; None if no record has it. Raises UnavailableError."""
        if relative not in self._known and len(self._known) == READ_ONE_BY_ONE and not self._all:
            self._read_all()
        if relative not in self._known:
            self._known[relative] = self._read(relative)
        return self._known[relative]

    def _read_all(self) -> None:
        self._all, complete = True, CompleteOutputs(self._prefix)
        for mark, record in complete.records(complete.marks).items():
            self._known.setdefault(f"{mark.name}-{mark.version}", record.version or None)

    def _read(self, relative: str) -> Mapping[str, Any] | None:
        record, _ = readable_record(join(self._prefix, relative), Status.SUCCESS)
        past = [record] if record is not None else past_records(self._prefix, relative)
        return next((recorded.version for recorded in past if recorded.version), None)
