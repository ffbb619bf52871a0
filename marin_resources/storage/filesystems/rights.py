"""The right to write on a disk, by trying: root has the right to write where a file system refuses."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
import tempfile

from marin_resources.storage.paths import absolute, is_local
from marin_resources.types.versioned_json import ControlFileError

ADVICE = (
    "Set MARIN_PREFIX to a folder of yours and adopt there what you need of this one (marin adopt), or share the "
    "folder by a group, as docs/how-to/share-a-folder.md shows."
)
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""The numbers of errors of a user without the right."""


class NoRightError(ControlFileError, PermissionError):
    """A file of the prefix that this user has no right to open or create: one sentence with its path, owner and mode.

    It is an OSError too, for callers that can do without the file.
    """


def is_denied(error: OSError) -> bool:
    """Whether an error of a file system is a missing right of this user."""
    return error.errno in DENIED


def why_unwritable(path: str) -> str:
    """Why this process can create nothing at `path`, as a phrase with the folder, its owner and its mode; "" if it can.

    What counts is the folder at `path`, or the nearest one above it that exists. In a bucket nothing is tried.
    """
    if not is_local(path):
        return ""
    folder = nearest_folder(absolute(path))
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return describe_denied(folder, error)


def no_right(path: str, error: OSError, right: str = "written") -> OSError:
    """The error to raise for one of opening or creating a file: a NoRightError, or another one as it is."""
    if not is_denied(error):
        return error
    place = path if os.path.exists(path) else nearest_folder(path)
    return NoRightError(f"{describe_denied(place, error, right)}. {ADVICE}")


def describe_denied(place: str, error: OSError, right: str = "written") -> str:
    """A phrase for an error at an existing file or folder: the path, what cannot be done ("read"), and the owner."""
    if error.errno == errno.EROFS:
        return f"{place!r} is on a file system that is mounted read-only"
    if not is_denied(error):
        return f"{place!r} cannot be {right} ({error.strerror})"
    state = os.stat(place)
    return (
        f"{place!r} cannot be {right} by {_user(os.geteuid())}: it is of {_user(state.st_uid)}, group "
        f"{group_name(state.st_gid)}, mode {stat.filemode(state.st_mode)}"
    )


def nearest_folder(path: str) -> str:
    """The folder itself, or the nearest one above it that exists."""
    place = os.path.abspath(path)
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    return place


def is_writable(folder: str) -> bool:
    return not why_unwritable(folder)


def group_name(gid: int) -> str:
    """Name of a group of this machine; its number if it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:  # a container's user has no name
        return f"user {uid}"
