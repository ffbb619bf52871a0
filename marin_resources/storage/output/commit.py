"""`.marin/manifest.json`: the commit object of an output. It names the one writer and, at the end, holds the manifest.

    claimed    attempt `fence` by `owner` is at work, or died
    committed  complete: the manifest of the data, and the record. Final.

Every change is one compare-and-swap. A claim replaces the commit object that it has read and raises the fence;
publishing replaces that claim. So if a live writer was taken for dead and another has claimed, the writer with the
lower fence finds its claim replaced and cannot publish, whatever its clock or network did. (Chubby's sequencers,
Burrows 2006; fencing tokens, Kleppmann 2016.)

The commit object holds the record too. If the publisher dies before it has written record and status, the next reader
writes them, and nothing is computed again.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.lease.protocol import LeaseLostError
from marin_resources.storage.manifest.manifest import FORMAT_VERSION, NAME, Manifest
from marin_resources.storage.output.record import read_record
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError, VersionedJson


class CommitError(ControlFileError):
    """A commit object that cannot be read: one sentence with its path."""


SHAPE = {"fence": int, "owner": str, "identity": str, "state": str, "record": Record.shape}
FORMAT = VersionedJson(kind="manifest", newest=FORMAT_VERSION, error=CommitError, shape=SHAPE)


class State(enum.StrEnum):
    CLAIMED = "claimed"
    COMMITTED = "committed"


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The commit object as it was at one moment."""

    fence: int
    """The number of the attempt; it only grows."""
    owner: str
    identity: str
    """SHA-256 of the output's whole version."""
    state: State
    manifest: Manifest | None = None
    record: Record | None = None
    generation: str = ""

    def to_bytes(self) -> bytes:
        writer = {"fence": self.fence, "owner": self.owner, "identity": self.identity, "state": self.state.value}
        data = self.manifest.to_json() if self.manifest else {}
        record = {"record": self.record.to_dict()} if self.record is not None else {}
        return json.dumps({"format_version": FORMAT_VERSION, **writer, **data, **record}, indent=1).encode()


def read_commit(output_path: str) -> Commit | None:
    """The commit object, or None if it does not exist. In format 1 (names and sizes) it is complete without a record.

    Raises ControlFileError and UnavailableError.
    """
    path = join(output_path, NAME)
    snapshot = control.read(path)
    if snapshot is None:
        return None
    fields = FORMAT.parse(snapshot.data, path)
    try:
        state = State(fields.get("state", State.COMMITTED))
        return Commit(
            fence=fields.get("fence") or 0,
            owner=fields.get("owner") or "",
            identity=fields.get("identity") or "",
            state=state,
            manifest=Manifest.from_json(fields) if state is State.COMMITTED else None,
            record=Record.from_dict(fields["record"]) if fields.get("record") is not None else None,
            generation=snapshot.generation,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FORMAT.invalid(path, error) from error


def recorded(path: str, status: Status) -> Record | None:
    """The record of an output; the commit object's copy, if Marin has rewritten the file, as it does at each start."""
    record = read_record(path)
    if status is Status.SUCCESS and (record is None or record.format_version is None):
        committed = read_commit(path)
        if committed is not None and committed.record is not None:
            return committed.record
    return record


def readable_record(path: str, status: Status) -> tuple[Record | None, str]:
    """The record of an output, and a sentence if its file is damaged: then it is the commit object's copy, or None if
    that is damaged too or has none. Raises UnavailableError."""
    try:
        return recorded(path, status), ""
    except ControlFileError as error:
        try:
            committed = read_commit(path)
        except ControlFileError:
            committed = None
        return None if committed is None else committed.record, str(error)


def claim_commit(output_path: str, *, fence: int, owner: str, identity: str, over: Commit | None) -> Commit:
    """Become the writer with this fence by replacing the commit `over` that was read. Raises ConflictError."""
    claimed = Commit(fence=fence, owner=owner, identity=identity, state=State.CLAIMED)
    return _swap(output_path, claimed, over.generation if over else None)


def publish_commit(output_path: str, claimed: Commit, manifest: Manifest, record: Record) -> Commit:
    """Make the output complete. Raises LeaseLostError if another attempt has claimed it."""
    complete = Commit(
        fence=claimed.fence,
        owner=claimed.owner,
        identity=claimed.identity,
        state=State.COMMITTED,
        manifest=manifest,
        record=record,
    )
    try:
        return _swap(output_path, complete, claimed.generation)
    except ConflictError:
        now = read_commit(output_path)
        whose = f"attempt {now.fence} has taken it over" if now else "its commit object was removed"
        raise LeaseLostError(
            f"Attempt {claimed.fence} at {output_path!r} may not publish: {whose}. "
            "Run again; complete outputs are reused."
        ) from None


def _swap(output_path: str, commit: Commit, expected: str | None) -> Commit:
    generation = control.write(join(output_path, NAME), commit.to_bytes(), expected=expected)
    return Commit(**{**vars(commit), "generation": generation})
