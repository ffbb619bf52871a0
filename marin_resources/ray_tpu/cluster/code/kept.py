"""`<prefix>/.marin/code/<package>.zip`: the packages that jobs were given, for who wants to read the code of an output.

A cluster keeps a package in the memory of its head, and loses it with the head. The name has the digest of the content.
"""

from __future__ import annotations

from functools import cache

from marin_resources.ray_tpu.cluster.code.package import Package
from marin_resources.storage.files import exists, write_bytes
from marin_resources.storage.paths import join

FOLDER = ".marin/code"
"""Below the prefix."""


def keep(prefix: str, package: Package) -> None:
    """Store the package below the prefix, unless it exists."""
    path = _path(prefix, package.uri)
    if not _is_kept(path):
        write_bytes(path, package.data)
        _is_kept.cache_clear()


def _path(prefix: str, uri: str) -> str:
    return join(prefix, FOLDER, uri.rpartition("://")[2])


@cache
def _is_kept(path: str) -> bool:
    return exists(path)
