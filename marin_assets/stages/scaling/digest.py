"""The digest of a table on this machine, which no step makes, so that its content enters the version."""

from __future__ import annotations

import hashlib

from marin_assets.stages.scaling.errors import ScalingError
from marin_resources.storage.files import read_bytes, stored_files


def digest_of(path: str) -> str:
    """The digest of the files at a path: their names below it, and their content. Raises FileNotFoundError."""
    digest = hashlib.sha256()
    for file in stored_files(path):
        content = read_bytes(file.path)
        digest.update(f"{file.name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def require_digest(path: str, expected: str | None) -> None:
    """Raise ScalingError if the table has changed since the step was created."""
    if expected is not None and digest_of(path) != expected:
        raise ScalingError(
            f"The table {path!r} is another one than when the step was created. Start the run again, which creates the "
            "step with the table of now."
        )
