"""The path of the data to adopt, from the text that a person has typed; and the places that may not be adopted."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator

from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.files import exists
from marin_resources.storage.paths import StoreKind, absolute, is_local, join, kind_of
from marin_resources.types import places
from marin_resources.types.output import below
from marin_resources.types.places import is_same, is_within, relative_to

OWN_FOLDER = ".marin"
"""Below the prefix, and in each output."""


def place_of(given: str, prefix: str) -> str:
    """The path of the data: `given` is relative to the prefix, absolute, or a URL. Raises AdoptionError."""
    path = below(prefix, given.strip()).rstrip("/")
    kind = kind_of(path)
    if not given.strip(" /."):
        raise AdoptionError(f"The path to adopt is {given!r}, expected a folder or a URL.")
    if kind is StoreKind.MIRROR:
        raise AdoptionError(f"{given!r} is a view of several regions. Give the path that the data have in one of them.")
    if kind is StoreKind.OTHER:
        raise AdoptionError(
            f"{given!r} is on an unknown store, expected a folder, or a URL that begins with gs:// or s3://."
        )
    if kind is StoreKind.DISK:
        if not is_local(prefix):
            raise AdoptionError(
                f"{given!r} is on this machine's disk and the prefix is {prefix!r}, so no other machine could read the "
                "data. Copy them into a bucket, and adopt that."
            )
        return _as_prefix_spells(absolute(path), prefix)
    if ".." in path.split("/"):
        raise AdoptionError(
            f"{given!r} has '..' in it, which is a name like any other in a bucket. Give the whole path."
        )
    return _as_prefix_spells(path, prefix)


def _as_prefix_spells(path: str, prefix: str) -> str:
    relative = relative_to(path, [prefix])
    return path if relative is None else join(prefix, relative)


def refuse_control_files(path: str) -> None:
    """Raise AdoptionError for a folder of control files. They change, and files that were moved aside are removed."""
    if OWN_FOLDER in path.split("/") or OWN_FOLDER in places.place_of(path).split("/"):
        raise AdoptionError(
            f"{path!r} is in a folder {OWN_FOLDER!r}, which holds control files and what was moved aside, expected a "
            "folder of data. Give the output's own path, or copy the files to another folder and adopt that."
        )


def refuse_own_place(path: str, own: Iterable[str], label: str) -> None:
    """Raise AdoptionError for a path that is one of the output's own, is inside one, or has one inside."""
    for own_path in own:
        if is_same(path, own_path):
            raise AdoptionError(f"{path!r} is the path of {label!r} itself. Give the path of other data.")
        if is_within(path, own_path):
            raise AdoptionError(
                f"{path!r} is inside {own_path!r}, the path of {label!r} itself. Give the path of other data."
            )
        if is_within(own_path, path):
            raise AdoptionError(
                f"{path!r} has {own_path!r} inside, the path of {label!r} itself. Give a folder that holds the data "
                "alone."
            )


def folders_above(path: str) -> Iterator[str]:
    """The folders above a path, the nearest first, up to the root of the disk or the bucket; also those above the place
    to which links lead."""
    for spelled in dict.fromkeys([path, places.place_of(path)]):
        scheme, separator, rest = spelled.rpartition("://")
        while (rest := posixpath.dirname(rest)) not in ("", "/"):
            yield scheme + separator + rest


def nothing_at(path: str, given: str) -> AdoptionError:
    """The sentence for a path where nothing is. Names a folder of the same name below the working folder."""
    here = os.path.abspath(given)
    meant = f" Did you mean {here!r}?" if "://" not in given and here != path and exists(here) else ""
    return AdoptionError(f"Nothing exists at {path!r}. Paths are relative to the prefix, absolute, or URLs.{meant}")
