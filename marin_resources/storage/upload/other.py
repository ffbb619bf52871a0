"""Upload to a store without code of its own here, through its fsspec filesystem."""

from __future__ import annotations

import hashlib

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.upload.protocol import Body

PART_BYTES = 8 * 1024**2


class OtherObject:
    errors: tuple[type[BaseException], ...] = (OSError,)

    def __init__(self, path: str) -> None:
        self._fs, self._place = filesystem_of(path)

    def put(self, body: Body, content_type: str, *, replace: bool) -> None:
        with self._fs.open(self._place, "wb" if replace else "xb") as file:
            for part in body.parts(PART_BYTES):
                file.write(part)

    def digest(self) -> tuple[int, str] | None:
        if not self._fs.exists(self._place):
            return None
        with self._fs.open(self._place, "rb") as file:
            md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
            return file.tell(), md5.hexdigest()
