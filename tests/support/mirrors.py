"""Three regions for tests of the mirror: "here" is the local one, "near" costs less than "far"."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import object_stores
import pytest

from marin_resources.storage.files import read_bytes, sizes_below
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join
from marin_resources.storage.transfer.account import Account

NAMES = ("here", "near", "far")


@dataclass(frozen=True)
class Mirror:
    here: str
    near: str
    far: str

    def put(self, region: str, relative: str, data: bytes) -> None:
        """A file that was written in `region`."""
        fs, place = filesystem_of(join(getattr(self, region), relative))
        fs.makedirs(fs._parent(place), exist_ok=True)
        fs.pipe_file(place, data)

    def get(self, region: str, relative: str) -> bytes:
        return read_bytes(join(getattr(self, region), relative))

    def remove(self, region: str, relative: str) -> None:
        fs, place = filesystem_of(join(getattr(self, region), relative))
        fs.rm_file(place)

    def files(self, region: str) -> dict[str, int]:
        """Relative path -> bytes of all files in the region, without the mirror's own notes."""
        found = sizes_below(getattr(self, region))
        return {name: size for name, size in found.items() if not name.endswith(".mirror")}

    def variables(self) -> dict[str, str]:
        return {
            "MARIN_PREFIX": self.here,
            "MARIN_MIRROR_PREFIXES": ",".join(f"{name}={getattr(self, name)}" for name in NAMES),
            "MARIN_MIRROR_PRICES": "near>here=0.01,far>here=0.05,near>far=0.01,far>near=0.01",
        }


def declare(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    for name, value in mirror.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MARIN_REGION", raising=False)
    return mirror


def fresh(store: str, tmp_path: Path) -> Mirror:
    """On a disk, in buckets of GCS, or a folder here and buckets elsewhere ("mixed"), or the other way ("upward")."""
    folders = [str(tmp_path / name) for name in NAMES]
    if store == "disk":
        return Mirror(*folders)
    buckets = [object_stores.gcs_prefix() for _ in NAMES]
    if store == "gcs":
        return Mirror(*buckets)
    return Mirror(folders[0], *buckets[1:]) if store == "mixed" else Mirror(buckets[0], *folders[1:])


def account(mirror: Mirror, budget_bytes: int, attempt: int = 1) -> Account:
    """Of a step that makes an output in the local region."""
    path = join(mirror.here, f"tokenized/x-{uuid.uuid4().hex[:6]}")
    return Account(step="tokenized/x", output_path=path, prefix=mirror.here, attempt=attempt, budget_bytes=budget_bytes)
