"""Paths: the kind of store of a path, and names below it.

A path is a plain URL string ("gs://bucket/a/b") or a local path ("/data/a", "file:///data/a"). This is the only module
that knows the schemes of stores; control, lease, upload and mirror choose their code by the kind.
"""

from __future__ import annotations

import enum
import os

from marin_resources.types import places
from marin_resources.types.places import split_scheme


class StoreKind(enum.Enum):
    DISK = "disk"
    GCS = "gcs"
    S3 = "s3"
    MIRROR = "mirror"
    """A view of several regions, each of them a folder or a bucket."""
    OTHER = "other"


SCHEMES = {
    "file": StoreKind.DISK,
    "gs": StoreKind.GCS,
    "gcs": StoreKind.GCS,
    "s3": StoreKind.S3,
    "s3a": StoreKind.S3,
    "mirror": StoreKind.MIRROR,
}
"""fsspec's names of the schemes."""
BUCKET_SCHEMES = tuple(scheme for scheme, kind in SCHEMES.items() if kind in (StoreKind.GCS, StoreKind.S3))


def kind_of(path: str) -> StoreKind:
    """The kind of store of `path`; OTHER for a scheme without code of its own here."""
    scheme, _ = split_scheme(path)
    return SCHEMES.get(scheme, StoreKind.OTHER) if scheme else StoreKind.DISK


def is_local(path: str) -> bool:
    """Whether `path` is on this machine's disk."""
    return kind_of(path) is StoreKind.DISK


def absolute(path: str) -> str:
    """A local path in the operating system's form: absolute, without "file://"."""
    return places.absolute(without_scheme(path))


def without_scheme(path: str) -> str:
    """`path` without "file://", "gs://" or another scheme: a local path, or "bucket/key"."""
    return path.partition("://")[2] if "://" in path else path


def name_below(given: str, prefix: str) -> str:
    """The name of an output that a person has typed: its path below the prefix, if it is a path that leads there; else
    as it is."""
    on_disk = is_local(given) and is_local(prefix) and os.path.exists(absolute(given))
    return places.relative_to(absolute(given) if on_disk else given, [prefix]) or given.rstrip("/")


def join(path: str, *names: str) -> str:
    """Append names to a path, with single slashes between."""
    return "/".join([path.rstrip("/"), *(name.strip("/") for name in names)])
