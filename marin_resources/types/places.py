"""Places: two paths that are spelled differently may be one folder, or one object.

On a disk the place is the path without links, "..", doubled slashes and "file://"; in a bucket its store and its key. A
path as text is an address to read; these functions decide whether two paths are the same, or one is inside another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

ALIASES = {"gcs": "gs", "s3a": "s3"}
"""Schemes of the same store."""


def split_scheme(path: str) -> tuple[str, str]:
    """The scheme in small letters, "" without one, and the rest."""
    scheme, separator, rest = path.partition("://")
    return (scheme.lower(), rest) if separator else ("", path)


def place_of(path: str) -> str:
    """The one spelling of a place. A relative path is below the working folder."""
    scheme, rest = split_scheme(path)
    if scheme in ("", "file"):
        return os.path.realpath(absolute(rest))
    return f"{ALIASES.get(scheme, scheme)}://{rest.rstrip('/')}"


def absolute(path: str) -> str:
    """A local path without scheme in the operating system's form. POSIX keeps two slashes at the front."""
    normalized = os.path.abspath(os.path.expanduser(path))
    return "/" + normalized.lstrip("/") if normalized.startswith("//") else normalized


def is_same(path: str, other: str) -> bool:
    """Whether two paths are one place."""
    return path == other or place_of(path) == place_of(other)


def is_within(path: str, folder: str) -> bool:
    """Whether `path` is the folder, or inside it."""
    return is_same(path, folder) or relative_to(path, [folder]) is not None


def relative_to(path: str, folders: Iterable[str]) -> str | None:
    """The path below the first of the folders that it is inside; None if it is in none, or relative itself."""
    scheme, rest = split_scheme(path)
    on_disk = scheme in ("", "file")
    if on_disk and not scheme and not path.startswith(("/", "~")):
        return None
    roots = [folder.rstrip("/") for folder in folders]
    if not on_disk or not {"..", "."}.intersection(rest.split("/")):
        for folder in roots:
            if path.startswith(f"{folder}/"):
                return _plain(path[len(folder) + 1 :]) if on_disk else path[len(folder) + 1 :]
    place = place_of(path)
    places = (place_of(folder or "/").rstrip("/") for folder in roots)
    return next((place[len(parent) + 1 :] for parent in places if place.startswith(f"{parent}/")), None)


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part)
