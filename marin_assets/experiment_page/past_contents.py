"""Outputs that were computed again with another content: the newest record of an earlier computation of the version.

In:  complete outputs, and the store, whose history has the records of removed ones.   Out: those records.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_resources.storage.files import names_below
from marin_resources.storage.output.notes.history import FOLDER, past_records
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output
from marin_resources.types.record import Record

MOST = 200
"""Outputs whose history is read."""


def past_contents(store: Store, observed: Mapping[Output, Observed]) -> dict[Output, Record]:
    """Output -> the newest record of an earlier computation with another content. Raises UnavailableError."""
    names = names_below(join(store.prefix, FOLDER)) if observed else []
    removed = {name.rpartition("/")[0] for name in names}
    again = [output for output, seen in observed.items() if seen.done and output.relative() in removed]
    past = {output: _newest_other(store, output, observed[output].record) for output in again[:MOST]}
    return {output: record for output, record in past.items() if record is not None}


def _newest_other(store: Store, output: Output, now: Record) -> Record | None:
    others = [
        record
        for record in past_records(store.prefix, output.relative())
        if record.identity == now.identity and None not in (record.manifest.digest, now.manifest.digest)
    ]
    return others[-1] if others and others[-1].manifest.digest != now.manifest.digest else None
