"""Control files of a complete output beside its data, where these are in another region than the output's home.

They repeat what is at the home, so that the region has a whole output. An attempt that computes it again withdraws
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.lease import lease
from marin_resources.storage.output import commit, record, status
from marin_resources.storage.output.commit import Commit
from marin_resources.storage.output.leftovers import StoreError
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output, Status
from marin_resources.types.record import Record

NAMES = (status.NAME, record.NAME, commit.NAME)
"""The status is withdrawn first and written last: readers go by it."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """One file, as it was listed."""

    path: str
    generation: str


def copies_path(recorded: Record) -> str | None:
    """The path of the copies of an output with this record; None for none. Beside adopted data nothing is written."""
    return None if recorded.adopted else recorded.data_path


def write_copies(data_path: str, committed: Commit) -> None:
    """Write the copies of a committed output. Every process writes the same."""
    assert committed.record is not None
    control.put(join(data_path, commit.NAME), committed.to_bytes())
    record.write_record(data_path, committed.record)
    status.write_status(data_path, Status.SUCCESS)


def list_copies(data_path: str) -> list[Copy]:
    """The copies of an earlier computation. Call it before the claim.

    Raises StoreError for control files that are no copies, but those of a deployment whose home is that region.
    """
    existing = record.read_record(data_path)
    ours = existing is not None and existing.data_path == data_path
    theirs = status.read_status(data_path) or commit.read_commit(data_path) or lease.holder_of(data_path)
    if theirs is not None and not ours:
        raise StoreError(
            f"{data_path!r} is an output of another deployment, whose MARIN_PREFIX is in that region, so it is not "
            "touched. Two deployments that share a region have one home: give both the same MARIN_PREFIX."
        )
    paths = [join(data_path, name) for name in NAMES]
    listed = [(path, control.read(path)) for path in paths]
    return [Copy(path=path, generation=snapshot.generation) for path, snapshot in listed if snapshot is not None]


def withdraw_copies(copies: Iterable[Copy]) -> None:
    """Remove the listed generations. What a newer attempt has written since stays."""
    for copy in copies:
        try:
            control.delete(copy.path, expected=copy.generation)
        except ConflictError:
            continue


def look_elsewhere(output: Output, places: Iterable[str]) -> Observed | None:
    """The output as one of these places in other regions has it complete, with its data: of a deployment whose home
    that is, of Marin, or of this one, whose own home is lost. Raises ControlFileError."""
    for place in places:
        if status.read_status(place) is Status.SUCCESS:
            recorded = commit.recorded(place, Status.SUCCESS) or Record()
            if recorded.data_path in (None, place):
                return Observed(
                    path=place, status=Status.SUCCESS, record=recorded, match=record.match(recorded, output)
                )
    return None
