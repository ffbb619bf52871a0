"""The store of a region's path, as a mirror uses it."""

from __future__ import annotations

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.mirror.protocol import Store
from marin_resources.storage.paths import StoreKind, kind_of


def store_of(path: str) -> Store:
    """Imports are late because a bucket's client takes a second to load, not because of a cycle."""
    match kind_of(path):
        case StoreKind.DISK:
            from marin_resources.storage.mirror.disk import DiskStore

            return DiskStore()
        case StoreKind.GCS:
            from marin_resources.storage.mirror.gcs import GcsStore

            return GcsStore()
    raise SettingError(f"{path!r} cannot be mirrored: a mirror consists of folders and gs:// prefixes.")
