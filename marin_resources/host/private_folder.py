"""A folder of this user alone for the files of Ray. Ray gives all users the right to write into its folders, which hold
sockets and shipped code."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from marin_resources.types.errors import MarinError


class NotPrivateError(MarinError):
    """A folder for Ray's files is not this user's own: one sentence."""


def private_folder(path: str | Path) -> Path:
    """Create the folder for this user alone, or close an own one to the others. Return a folder in it for Ray, which
    opens that to everybody. Raises NotPrivateError."""
    folder = Path(path)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    status = folder.lstat()
    if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
        raise NotPrivateError(
            f"Ray's files would be in {str(folder)!r}, and that is not a folder of this user's own. Remove it."
        )
    folder.chmod(0o700)
    return folder / "r"
