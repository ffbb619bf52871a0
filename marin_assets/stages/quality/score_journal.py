"""Scores of the blocks of a shard, stored below the output while the shard runs, so that a killed shard resumes.

A block is some documents that are scored together. Its scores are stored with a digest of the documents, of the scores
and of all that the scores depend on. With another digest they are computed again: another classifier, another text, or
a damaged file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Sequence
from contextlib import suppress

from marin_assets.inference.journal import FOLDER, Journal
from marin_resources.storage.files import remove_folder
from marin_resources.storage.paths import join

log = logging.getLogger(__name__)

Block = Sequence[tuple[str, str]]
"""Ids and texts of documents."""


class ScoreJournal:
    """The blocks of one shard, in their order."""

    def __init__(self, output_path: str, shard: str, key: str, *, save_every: int) -> None:
        """Read what an earlier attempt has saved of the shard. `key`: all that scores depend on beside the documents.

        `save_every`: documents whose scores may be lost if the process is killed.
        """
        self._key, self._save_every = key, save_every
        self._journal = Journal(output_path, shard, save_every_s=math.inf)
        self._block, self._unsaved = 0, 0
        if self._journal.rows:
            log.info("%s: continues after %d blocks that were scored before", shard, len(self._journal.rows))

    def next_scores(self, block: Block) -> list[float] | None:
        """Return the stored scores of the next block, None if it must be scored; then call `add`."""
        row = self._journal.rows.get(self._block)
        if row is None or row.get("digest") != self._digest(block, row.get("scores")):
            return None
        self._block += 1
        scores: list[float] = row["scores"]
        return scores

    def add(self, block: Block, scores: list[float]) -> None:
        """Add the scores of the next block, and save those of `save_every` documents or more."""
        self._journal.add({"place": self._block, "digest": self._digest(block, scores), "scores": scores})
        self._block += 1
        self._unsaved += len(block)
        if self._unsaved >= self._save_every:
            self._journal.save()
            self._unsaved = 0

    def _digest(self, block: Block, scores: object) -> str:
        digest = hashlib.sha256(json.dumps([self._key, scores, [id for id, _ in block]]).encode())
        for _, text in block:
            digest.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def remove_score_journals(output_path: str) -> None:
    """Remove the blocks of all shards of an output: the shards are finished."""
    with suppress(FileNotFoundError):
        remove_folder(join(output_path, FOLDER))
