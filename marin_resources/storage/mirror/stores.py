"""The store that a path of a region is in, as a mirror uses it."""

from __future__ import annotations

from marin_resources.settings import SettingError
from marin_resources.storage.mirror.stored import Store
from marin_resources.storage.paths import StoreKind, kind_of


def store_of(path: str) -> Store:
    """The late imports break a weight, not a circle: a bucket's client takes a second to load."""
    match kind_of(path):
        case StoreKind.DISK:
            from marin_resources.storage.mirror.store_local import LocalStore

            return LocalStore()
        case StoreKind.GCS:
            from marin_resources.storage.mirror.store_gcs import GcsStore

            return GcsStore()
    raise SettingError(f"{path!r} cannot be mirrored: a mirror is made of folders and of gs:// prefixes.")
