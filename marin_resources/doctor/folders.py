"""Whether this user can make and write a folder, by trying: root has the right to write where a file system refuses."""

from __future__ import annotations

import os
import tempfile


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


def nearest_folder(path: str) -> str:
    """The folder itself, or the nearest one above it that exists."""
    place = os.path.abspath(path)
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    return place


def is_writable(folder: str) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
