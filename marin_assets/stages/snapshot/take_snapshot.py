"""Take a snapshot of a step with partitions.

In:  the folder of its partitions.
Out: partitions.json: the key, path and manifest digest of each partition that is complete now.

Of a delivery of raw data that was taken again, the newest complete revision is listed alone.

What is in the folder grows, the snapshot does not: it is made once for each of its own keys. What reads it has its keys
too, so a later snapshot is a new output, and never a new content at an old path.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.snapshots import SnapshotPartition, write_snapshot
from marin_assets.step.values import THIS_OUTPUT_PATH
from marin_resources.storage.files import names_in
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Status, identity_of
from marin_resources.types.partition_key import key_of, key_of_revision, revision_of, segment_of
from marin_resources.types.record import Record

KINDS = ("json",)
LOOKS_AT_ONCE = 32
log = logging.getLogger(__name__)


class NothingCompleteError(MarinError, ValueError):
    """No partition is complete: one sentence with the folder."""


@dataclass(frozen=True, kw_only=True)
class TakeSnapshotConfig:
    partitions_path: str
    """The folder of a step's partitions: `partitions_folder(step)`."""
    output_path: str = THIS_OUTPUT_PATH


def take_snapshot(config: TakeSnapshotConfig) -> dict[str, Any]:
    """Write the list of complete partitions. Returns partitions, incomplete, superseded, bytes, and adopted_inputs if
    some of them are adopted or made from adopted outputs.

    Raises NothingCompleteError, and ControlFileError for a damaged record.
    """
    keys = sorted(key for name in names_in(config.partitions_path) if (key := key_of(name)) is not None)
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
        looked = list(pool.map(lambda key: _look(config.partitions_path, key), keys))
    complete = [partition for partition in looked if partition is not None]
    if not complete:
        raise NothingCompleteError(
            f"No partition of {config.partitions_path!r} is complete, of {len(keys)} that were begun. Materialize some "
            "of them first."
        )
    log.info("%d of %d partitions of %s are complete", len(complete), len(keys), config.partitions_path)
    newest = _newest_revisions(partition.key for partition, _ in complete)
    listed = [(partition, record) for partition, record in complete if partition.key in newest]
    write_snapshot(config.output_path, [partition for partition, _ in listed])
    adopted = {name: source for partition, record in listed for name, source in _adopted(partition.key, record).items()}
    return {
        "partitions": len(listed),
        "incomplete": len(keys) - len(complete),
        "superseded": len(complete) - len(listed),
        "bytes": sum(record.manifest.bytes or 0 for _, record in listed),
        **({"adopted_inputs": adopted} if adopted else {}),
    }


def _newest_revisions(keys: Iterable[str]) -> set[str]:
    newest: dict[str, int] = {}
    for delivery, revision in map(revision_of, keys):
        newest[delivery] = max(newest.get(delivery, 1), revision)
    return {key_of_revision(delivery, revision) for delivery, revision in newest.items()}


def _adopted(key: str, record: Record) -> dict[str, Any]:
    """The adopted inputs of a reader of the partition, by name, as its record has them."""
    sources: dict[str, Any] = {name: source.to_dict() for name, source in record.adopted_inputs.items()}
    if adopted := record.adopted:
        sources[f"{record.name}[{key}]"] = {"from": adopted.path, "why": adopted.why}
    return sources


def _look(folder: str, key: str) -> tuple[SnapshotPartition, Record] | None:
    """The partition and its record, if it is complete."""
    path = join(folder, segment_of(key))
    if read_status(path) is not Status.SUCCESS:
        return None
    record = read_record(path) or Record()
    own = identity_of({"version": identity_of(record.version), "partition": key})
    if record.identity != own:
        return None  # not a partition of this software's
    own_path = path if record.adopted else None
    partition = SnapshotPartition(
        key=key, path=record.data_path or path, digest=record.manifest.digest, own_path=own_path
    )
    return partition, record
