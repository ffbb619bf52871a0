"""Control files: small files that are read and written under a condition, the same way on every store.

A *generation* identifies one content of one file: GCS's own generation, S3's entity tag, on a local disk the inode and
the time of its change. A write names the generation that it replaces (None: the file must not exist) and fails if
the file has another one. This is a compare-and-swap: of two writers exactly one succeeds.

No listing and no cache is involved. If the response to a successful write is lost, the file is read back and its bytes
are compared, so bodies must differ between writers: those that decide anything carry an id of their writer.
"""

from __future__ import annotations

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.control.protocol import ConflictError, ControlFiles, Snapshot, UnavailableError
from marin_resources.storage.paths import StoreKind, kind_of


def read(path: str) -> Snapshot | None:
    """The control file at `path` with its generation, or None if it does not exist.

    Raises UnavailableError if the store does not answer, and ControlFileError for what is not a readable file.
    """
    return _control_files(path).read(path)


def write(path: str, data: bytes, *, expected: str | None) -> str:
    """Replace the generation `expected` (None: create the file) with `data`; return the new generation.

    Raises ConflictError if another generation exists, and UnavailableError if the outcome is unknown.
    """
    files = _control_files(path)
    try:
        return files.write(path, data, expected)
    except (ConflictError, UnavailableError):
        # An earlier try of this write may have succeeded, with its response lost.
        snapshot = files.read(path)
        if snapshot is not None and snapshot.data == data:
            return snapshot.generation
        raise


def delete(path: str, *, expected: str) -> None:
    """Remove a file if it has the expected generation. Raises ConflictError if it has another, or is gone."""
    _control_files(path).delete(path, expected)


def put(path: str, data: bytes) -> str:
    """Write `data` over any content and return the generation; another file must give the caller that right."""
    while True:
        snapshot = read(path)
        try:
            return write(path, data, expected=snapshot.generation if snapshot else None)
        except ConflictError:
            continue


def refuse_store_without_conditions(prefix: str) -> None:
    """Raise SettingError for a prefix on a store without compare-and-swap, before anything is read."""
    _control_files(prefix)


def require_reachable(prefix: str) -> None:
    """Raise UnavailableError within a few seconds if the bucket of the prefix does not accept a connection.

    For the first access of a command: without it, gcsfs's retries delay the error by 67 s, and by 84 s if Google's
    metadata server does not answer either.
    """
    if kind_of(prefix) is StoreKind.GCS:
        from marin_resources.storage.control.endpoint import require_gcs

        require_gcs()


def _control_files(path: str) -> ControlFiles:
    """Imports are late because a bucket's client takes a second to load, not because of a cycle."""
    match kind_of(path):
        case StoreKind.DISK:
            from marin_resources.storage.control.disk import DiskControlFiles

            return DiskControlFiles()
        case StoreKind.GCS:
            from marin_resources.storage.control.gcs import GcsControlFiles

            return GcsControlFiles()
        case StoreKind.S3:
            from marin_resources.storage.control.s3 import S3ControlFiles

            return S3ControlFiles()
    raise SettingError(
        f"The prefix {path!r} is on a store without conditional writes, which one writer for an output depends on. "
        "Set MARIN_PREFIX to a folder, or to a URL that begins with gs:// or s3://."
    )
