"""Control files: small files that are read and written under a condition, the same way on every store.

A *generation* stands for one content of one file: GCS's own generation, S3's entity tag, on a local disk the inode and
the time of its change. Writing names the generation that is to be replaced (None: there must be no file), and fails if
another is there: a compare-and-swap, by which two writers find out which of them is the one.

Nothing here goes through a listing or a cache. A response that is lost after its write took effect is recognised by
reading back, so bodies must differ between writers: those that decide anything carry an id of who wrote them.
"""

from __future__ import annotations

from marin_resources.settings import SettingError
from marin_resources.storage.control.protocol import ConflictError, ControlFiles, Snapshot, UnavailableError
from marin_resources.storage.paths import StoreKind, kind_of


def read(path: str) -> Snapshot | None:
    """The control file at `path` with its generation, or None if there is none. Raises UnavailableError."""
    return _control_files(path).read(path)


def write(path: str, data: bytes, *, expected: str | None) -> str:
    """Write `data` in place of the generation `expected` (None: create the file); returns the new generation.

    Raises ConflictError if another generation is there, and UnavailableError if it cannot be told what is there now.
    """
    files = _control_files(path)
    try:
        return files.write(path, data, expected)
    except (ConflictError, UnavailableError):
        # An earlier try of this very write may have taken effect and its response been lost.
        found = files.read(path)
        if found is not None and found.data == data:
            return found.generation
        raise


def delete(path: str, *, expected: str) -> None:
    """Remove a file if its generation is the one expected. Raises ConflictError if it is another, or gone."""
    _control_files(path).delete(path, expected)


def put(path: str, data: bytes) -> str:
    """Write `data` whatever is there, for a writer that is entitled to it by another file; returns the generation."""
    while True:
        found = read(path)
        try:
            return write(path, data, expected=found.generation if found else None)
        except ConflictError:
            continue


def refuse_store_without_conditions(prefix: str) -> None:
    """Raise SettingError for a prefix on a store that cannot compare and swap, before anything is looked at."""
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
    """The late imports break a weight, not a circle: a bucket's client takes a second to load."""
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
        f"The prefix {path!r} is on a store without conditional writes, by which one writer for an output is kept. "
        "Set MARIN_PREFIX to a folder, or to a URL that begins with gs:// or s3://."
    )
