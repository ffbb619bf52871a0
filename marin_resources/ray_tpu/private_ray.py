"""A Ray of this machine is for its user alone: its ports are on loopback, its files in a folder of the user's.

Ray listens at all addresses of a machine, and gives everybody the right to write into its folders, where sockets and
shipped code are.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from marin_resources.types.errors import MarinError

ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Variables of all of Ray's processes, with which 127.0.0.1 is the address of a node, as it is on macOS. Its ports are
then on loopback alone."""


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
