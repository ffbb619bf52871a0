"""The fsspec filesystem of a path. "mirror://" comes from fsspec's registry, like every other scheme."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

from marin_resources.storage.paths import StoreKind, is_local, kind_of
from marin_resources.types.places import split_scheme

if TYPE_CHECKING:
    import fsspec

MIRROR = "marin_resources.storage.mirror.filesystem.MirrorFileSystem"
"""Name of the class: fsspec imports it for the first path that needs it. pyproject names it for other programs."""


@cache
def _fsspec() -> Any:
    """Late, as fsspec imports asyncio and ssl: a plan of outputs on a disk has no need of them."""
    import fsspec

    fsspec.register_implementation("mirror", MIRROR, clobber=True)
    return fsspec


def filesystem_of(path: str, **options: Any) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of `path`, and the path as that filesystem spells it.

    A path is one file or folder: "::", "#" and "?" are letters of a name. `fsspec.core.url_to_fs` reads "a::b" as a
    chain of two URLs, and "a#1" in a bucket as generation 1 of "a". `options` are those of the class of a bucket's
    filesystem; each combination of them has connections of its own.
    """
    scheme, rest = split_scheme(path)
    if is_local(path):
        return _spelled(_fsspec().filesystem("file"), rest)
    path = f"{scheme}://{rest}"
    if kind_of(path) is StoreKind.OTHER:
        # From ~/.netrc the password of a host, and from HTTPS_PROXY the way to it, as other programs have them.
        options = {"client_kwargs": {"trust_env": True}} if scheme in ("http", "https") else {}
        return _fsspec().core.url_to_fs(path, use_listings_cache=False, **options)
    if kind_of(path) is StoreKind.MIRROR:
        fs, place = _spelled(_fsspec().filesystem(scheme), path)
        return fs, place.strip("/")
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it logs a traceback of every error that it raises
    # A cached listing would hide what another process has written or removed since.
    return _spelled(_fsspec().filesystem(scheme, use_listings_cache=False, **options), path)


def _spelled(fs: fsspec.AbstractFileSystem, path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    return fs, fs._strip_protocol(path)
