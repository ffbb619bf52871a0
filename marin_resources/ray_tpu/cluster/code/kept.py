"""`<prefix>/.marin/code/<package>.zip`: the packages that jobs were given, so that a job can be submitted again.

A cluster keeps a package in the memory of its head, and loses it with the head. The name has the digest of the content.
"""

from __future__ import annotations

from functools import cache

from marin_resources.ray_tpu.cluster.code.package import Package
from marin_resources.storage.files import exists, read_bytes, write_bytes
from marin_resources.storage.paths import join

FOLDER = ".marin/code"
"""Below the prefix."""


def keep(prefix: str, package: Package) -> None:
    """Store the package below the prefix, unless it exists."""
    path = _path(prefix, package.uri)
    if not _is_kept(path):
        write_bytes(path, package.data)
        _is_kept.cache_clear()


def read_kept(prefix: str, uri: str) -> bytes | None:
    """The content of a package, by its URI; None if it is not kept below this prefix."""
    try:
        return read_bytes(_path(prefix, uri))
    except FileNotFoundError:
        return None


def _path(prefix: str, uri: str) -> str:
    return join(prefix, FOLDER, uri.rpartition("://")[2])


@cache
def _is_kept(path: str) -> bool:
    return exists(path)
