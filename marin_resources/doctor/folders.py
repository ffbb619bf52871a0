"""Whether this user can make and write a folder."""

from __future__ import annotations

import os

from marin_resources.storage.filesystems.rights import is_writable


def why_unusable(folder: str) -> str:
    """Why nothing can be written into the folder, which need not exist yet, as a phrase; "" if it can."""
    place = os.path.abspath(folder)
    while not os.path.isdir(place):
        if os.path.islink(place):
            return f"{place!r} is a link to {os.readlink(place)!r}, which does not exist"
        if os.path.exists(place):
            return f"{place!r} is a file"
        place = os.path.dirname(place)
    return "" if is_writable(place) else f"{place!r} cannot be written by this user"
