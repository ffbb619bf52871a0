"""Answers to a list that is not finished, such as a shard's, so that a killed step resumes after them.

Objects of a bucket cannot be appended to, so a journal is parts: each is written at once, whole.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from typing import Any

from marin_resources.storage.files import names_in, read_bytes, remove, write_bytes
from marin_resources.storage.paths import join

FOLDER = ".marin/unfinished"
"""Below the output."""
Row = dict[str, Any]
SHORTEST_S, WRITING_SHARE = 1.0, 0.02
"""Least interval between two parts, and share of the time that writing them takes: of a bucket, parts are rarer."""

log = logging.getLogger(__name__)


class Journal:
    """The answers to one list, such as the documents of a shard, by their places in it, or by other names."""

    def __init__(self, output_path: str, shard: str, *, save_every_s: float | None) -> None:
        """Read what an earlier attempt has saved of the shard. `save_every_s` is the interval between two parts; None:
        as short as WRITING_SHARE allows."""
        self._folder = join(output_path, FOLDER, shard)
        self._is_fixed, self._saved_at = save_every_s is not None, time.monotonic()
        self._save_every_s = SHORTEST_S if save_every_s is None else save_every_s
        self._unsaved: list[Row] = []
        self.rows: dict[Any, Row] = {}
        self._parts = sorted(
            name for name in names_in(self._folder) if not name.startswith(".")
        )  # hidden: half written
        for part in self._parts:
            self._read(join(self._folder, part))

    def add(self, *rows: Row) -> None:
        """Add answers, each with its "place". They are saved in one part with others, or by `save`."""
        self._take(rows)
        self._unsaved += rows
        if time.monotonic() - self._saved_at > self._save_every_s:
            self.save()

    def save(self) -> None:
        """Write what is not saved yet."""
        began = time.monotonic()
        if self._unsaved:
            name = f"{len(self._parts):06}.jsonl"
            lines = (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in self._unsaved)
            write_bytes(join(self._folder, name), b"".join(lines))
            self._parts.append(name)
            self._unsaved = []
        self._saved_at = time.monotonic()
        if not self._is_fixed:
            self._save_every_s = max(SHORTEST_S, (self._saved_at - began) / WRITING_SHARE)

    def remove(self) -> None:
        """Remove the parts: the shard is finished."""
        for part in self._parts:
            remove(join(self._folder, part))

    def _read(self, path: str) -> None:
        """Take the answers of a part. Those of a damaged part are computed again."""
        try:
            self._take([json.loads(line) for line in read_bytes(path).splitlines()])
        except (ValueError, KeyError, TypeError) as error:
            log.warning("%r is damaged (%s: %s): its answers are computed again", path, type(error).__name__, error)

    def _take(self, rows: Iterable[Row]) -> None:
        self.rows |= {row["place"]: row for row in rows}
