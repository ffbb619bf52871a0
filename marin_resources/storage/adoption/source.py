"""The data to adopt, checked: a complete output with its manifest, or other data, of which a manifest is taken.

Names and sizes of all files are compared with the manifest of an output, and checksums too: all that the store has, and
those computed from the bytes if the output is small or that is requested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.adoption.source_path import (
    folders_above,
    nothing_at,
    place_of,
    refuse_control_files,
    refuse_own_place,
)
from marin_resources.storage.files import exists
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.lease import lease
from marin_resources.storage.manifest.listing import list_output
from marin_resources.storage.manifest.manifest import (
    IrregularFileError,
    Manifest,
    data_of,
    read_manifest,
    take_manifest,
)
from marin_resources.storage.output.commit import read_commit, recorded
from marin_resources.storage.output.status import NAME as STATUS
from marin_resources.storage.output.status import read_status
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verify import verify_outputs
from marin_resources.storage.paths import join
from marin_resources.types.output import Output, Status
from marin_resources.types.record import Record

SMALL_BYTES = 10**9
"""An output up to this size is read to compare its checksums: a few seconds."""
SHOWN_FINDINGS = 5
KEPT = ("name", "version", "identity", "finished_at")
"""Fields of the output's own record that the new one keeps."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Data that may be adopted."""

    path: str
    """Path of the data."""
    manifest: Manifest
    was_checked: bool
    """Whether they had a manifest, and agree with it. Otherwise it was taken now."""
    record: Record = field(default_factory=Record)
    """Record of the output that they are; empty for other data."""

    @property
    def of(self) -> dict[str, Any]:
        """The output that the data were computed as; for an adopted output, the one that it was adopted from."""
        if self.record.adopted:
            return dict(self.record.adopted.of)
        fields = self.record.to_dict()
        return {name: fields[name] for name in KEPT if fields.get(name) is not None}


def find_source(
    given: str, store: Store, output: Output, *, checksums: bool, report: Callable[[str], None] = lambda line: None
) -> Source:
    """The data at `given`, for the output. `checksums`: read all bytes; `report` gets the progress.

    Raises AdoptionError, ControlFileError and UnavailableError.
    """
    path, own = place_of(given, store.prefix), store.places(output)
    refuse_control_files(path)
    refuse_own_place(path, own, output.label)
    status = read_status(path)
    if status is not Status.SUCCESS:
        _refuse_incomplete(path, status)
    record = (recorded(path, status) if status is not None else None) or Record()
    data_path = record.data_path or path
    refuse_own_place(data_path, own, output.label)
    _refuse_part_of_incomplete(data_path)
    manifest = read_manifest(path) if status is not None else None
    if manifest is None:
        manifest = _take(data_path, given, report)
        return Source(path=data_path, manifest=manifest, was_checked=False, record=record)
    _require_right(path, manifest, checksums, report)
    return Source(path=data_path, manifest=manifest, was_checked=True, record=record)


def _refuse_incomplete(path: str, status: Status | None) -> None:
    """Raise AdoptionError if something that is no complete output is an output all the same."""
    holder = lease.holder_of(path)
    if holder is not None:
        state = f"it is being computed by {holder.describe()}"
    elif status is not None:
        state = f"its status is {status}"
    elif read_commit(path) is not None:
        state = "it has no status"
    else:
        return
    raise AdoptionError(f"{path!r} is an output that is not complete: {state}. Adopt it when it is complete.")


def _refuse_part_of_incomplete(path: str) -> None:
    """A folder inside a complete output may be adopted: a model's export, for example."""
    for above in folders_above(path):
        status = read_status(above)
        if status not in (None, Status.SUCCESS):
            raise AdoptionError(
                f"{path!r} is inside the output {above!r}, which is not complete: its status is {status}. Adopt it "
                "when it is complete."
            )


def _take(path: str, given: str, report: Callable[[str], None]) -> Manifest:
    """The manifest of data that have none."""
    if not exists(path):
        raise nothing_at(path, given)
    fs, root = filesystem_of(path)
    if fs.isfile(root):
        raise AdoptionError(f"{path!r} is a file, expected a folder of data files. Give the folder that it is in.")
    listed = list_output(path)[1]
    inside = next((file.name for file in listed if _is_status(file.name)), None)
    if inside is not None:
        raise AdoptionError(
            f"{path!r} has the output {join(path, inside.rpartition('/')[0])!r} inside. Adopt that one, or a folder "
            "that holds data alone."
        )
    if not data_of(listed):
        raise AdoptionError(f"{path!r} holds no data file, so there is nothing to adopt. Give the path of the data.")
    try:
        return take_manifest(path, report=report)
    except IrregularFileError as error:
        raise AdoptionError(str(error)) from None


def _is_status(name: str) -> bool:
    """Whether it is the status of an output inside. The content of `.marin` was moved aside."""
    return name.endswith(f"/{STATUS}") and not name.startswith(".marin/")


def _require_right(path: str, manifest: Manifest, checksums: bool, report: Callable[[str], None]) -> None:
    sample = 1.0 if checksums or manifest.bytes <= SMALL_BYTES else 0.0
    verified = verify_outputs([path], sample=sample, report=report)[path]
    if verified.data_ok:
        return
    shown = "; ".join(finding.sentence() for finding in verified.findings[:SHOWN_FINDINGS])
    more = f"; and {len(verified.findings) - SHOWN_FINDINGS} more" if len(verified.findings) > SHOWN_FINDINGS else ""
    raise AdoptionError(
        f"{path!r} is not as its manifest says: {shown}{more}. Restore the files, or copy those that are right to "
        "another folder and adopt that."
    )
