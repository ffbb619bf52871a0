"""Paths: the kind of store that a path is in, and names below it.

A path is a plain URL string ("gs://bucket/a/b") or a local path ("/data/a", "file:///data/a"). This is the one place
that knows which kinds of store exist; control, lease, upload and mirror each choose their own code by the kind.
"""

from __future__ import annotations

import enum
import os


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


def kind_of(path: str) -> StoreKind:
    """The kind of store that `path` is in; OTHER for a scheme without code of its own here."""
    scheme, separator, _ = path.partition("://")
    return SCHEMES.get(scheme, StoreKind.OTHER) if separator else StoreKind.DISK


def is_local(path: str) -> bool:
    """Whether `path` is on this machine's disk."""
    return kind_of(path) is StoreKind.DISK


def absolute(path: str) -> str:
    """A local path as the operating system takes it: absolute, without "file://"."""
    return os.path.abspath(path.removeprefix("file://"))


def join(path: str, *names: str) -> str:
    """Names below a path, with single slashes."""
    return "/".join([path.rstrip("/"), *(name.strip("/") for name in names)])
