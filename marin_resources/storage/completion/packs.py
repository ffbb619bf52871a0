"""Packs: the records of many complete outputs in one file, so that a plan of thousands reads a few files.

    <prefix>/.marin/records/<digest of its content>.json.gz
    {"format_version": 1, "records": {<file of the marker>: <record>}, "sources": {<digest>: <source_digest>}}

The marker may be that of a partition. A record of a complete output never changes, and its marker has another name
when the output is computed again. So a pack is never out of date: it only holds records whose marker is gone. A plan
that has read many records one by one writes them into a pack, and joins packs when they are too many. Facts that a plan
does not need (the function's result, the tries on slices) are left out.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_resources.storage.files import names_in, read_bytes, remove, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.record import Record

FOLDER = ".marin/records"
FORMAT_VERSION = 1
SUFFIX = ".json.gz"
RECORDS_IN_A_PACK = 2000
FEWEST_RECORDS = 64
"""Fewer records than that are not worth a pack."""
MOST_SMALL_PACKS = 8
THREADS = 16
DIGITS_OF_A_NAME = 16
LEFT_OUT = ("result", "tries")

log = logging.getLogger(__name__)

Records = dict[str, Record]
"""File of a marker -> the record."""


def names_of_packs(prefix: str) -> list[str]:
    """The names of the packs, by one listing."""
    return sorted(name for name in names_in(join(prefix, FOLDER)) if name.endswith(SUFFIX))


def read_packs(prefix: str, names: Iterable[str]) -> Records:
    """The records in these packs. One that is damaged, or of a newer format, is left out with a warning."""
    merged: Records = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for records in pool.map(lambda name: _read(join(prefix, FOLDER, name)), names):
            merged.update(records)
    return merged


def write_packs(prefix: str, records: Mapping[str, Record]) -> list[str]:
    """Write the records in packs; return their names. Two processes that write the same write one file."""
    names = []
    for part in _parts(sorted(records)):
        data = _data({file: records[file] for file in part})
        name = hashlib.sha256(data).hexdigest()[:DIGITS_OF_A_NAME] + SUFFIX
        write_bytes(join(prefix, FOLDER, name), data)
        names.append(name)
    return names


def slim(record: Record) -> Record:
    """A record without what a plan does not need."""
    return Record.from_dict({name: value for name, value in record.to_dict().items() if name not in LEFT_OUT})


def keep_packed(
    prefix: str,
    new: Mapping[str, Record],
    names: Sequence[str],
    packed: Records | None,
    list_live: Callable[[], set[str]],
) -> None:
    """Pack the records that were read one by one, and join the packs if they are too many.

    `names` are all packs, `packed` what they hold if it was read. `list_live` lists the files of all markers: a joined
    pack has no record without a marker. Raises the store's errors.
    """
    if packed is not None and len(names) > MOST_SMALL_PACKS:
        live = list_live()
        if len(names) > len(live) // RECORDS_IN_A_PACK + MOST_SMALL_PACKS:
            kept = write_packs(prefix, {file: record for file, record in {**packed, **new}.items() if file in live})
            for name in set(names) - set(kept):
                remove(join(prefix, FOLDER, name))
            return
    if len(new) >= FEWEST_RECORDS:
        write_packs(prefix, new)


def _data(records: Mapping[str, Record]) -> bytes:
    """Sources are stored once: steps with one function have the same, and it is the largest part of a record."""
    sources: dict[str, Any] = {}
    packed = {}
    for file, record in records.items():
        kept = slim(record).to_dict()
        if source := kept.get("source_digest"):
            key = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()[:DIGITS_OF_A_NAME]
            sources[key] = source
            kept["source_digest"] = key
        packed[file] = kept
    text = json.dumps({"format_version": FORMAT_VERSION, "records": packed, "sources": sources}, allow_nan=False)
    return gzip.compress(text.encode(), compresslevel=1, mtime=0)


def _read(path: str) -> Records:
    try:
        fields = json.loads(gzip.decompress(read_bytes(path)))
        if fields["format_version"] > FORMAT_VERSION:
            log.warning("the pack %r has a newer format and is left out: update this checkout", path)
            return {}
        records, sources = fields["records"], fields["sources"]
        return {file: _unpacked(packed, sources) for file, packed in records.items()}
    except FileNotFoundError:
        return {}  # another process has joined the packs in the meantime
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("the pack %r is damaged and left out (%s): remove it, the next plan writes another", path, error)
        return {}


def _unpacked(packed: Mapping[str, Any], sources: Mapping[str, Any]) -> Record:
    key = packed.get("source_digest")
    return Record.from_dict(packed if key is None else {**packed, "source_digest": sources[key]})


def _parts(files: list[str]) -> Iterator[list[str]]:
    for begin in range(0, len(files), RECORDS_IN_A_PACK):
        yield files[begin : begin + RECORDS_IN_A_PACK]
