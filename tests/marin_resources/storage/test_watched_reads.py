"""A watch sees every file that is opened, its place without links and its bytes, and can end the reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_assets.documents.rows import read_rows, write_rows
from marin_resources.storage.files import open_to_read, read_bytes
from marin_resources.storage.watched_reads import watching
from marin_resources.types.errors import MarinError


class RefusedError(MarinError):
    """The watch of this test has ended the reading."""


class Watch:
    def __init__(self, most: int = 10**9) -> None:
        self.places: list[str] = []
        self.bytes, self._most = 0, most

    def opened(self, place: str) -> None:
        self.places.append(place)

    def read(self, count: int) -> None:
        self.bytes += count
        if self.bytes > self._most:
            raise RefusedError("too much")


def test_places_and_bytes_are_those_of_the_file_behind_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "a.txt", tmp_path / "b.txt"
    target.write_bytes(b"0123456789")
    link.symlink_to(target)
    watch = Watch()
    with watching(watch):
        assert read_bytes(str(link)) == b"0123456789"
        with open_to_read(str(link)) as file:
            assert file.read(4) == b"0123"
            file.seek(8)
            assert file.read() == b"89"
    assert watch.places == [str(target), str(target)]
    assert watch.bytes == 16
    assert read_bytes(str(link)) == b"0123456789"
    assert watch.bytes == 16


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "jsonl.bz2", "parquet"])
def test_every_reader_of_rows_reads_the_same_and_ends_at_the_limit(tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / f"rows.{suffix}")
    if suffix == "jsonl.bz2":
        import bz2

        Path(path).write_bytes(bz2.compress(b'{"id": "a", "text": "b"}\n' * 1000))
    else:
        write_rows(path, [{"id": "a", "text": "b"}] * 1000)
    unwatched = list(read_rows(path))
    with watching(Watch()):
        assert list(read_rows(path)) == unwatched
    with watching(Watch(most=40)), pytest.raises(RefusedError):
        list(read_rows(path))


def test_a_bucket_is_watched_by_its_bytes(gcs_prefix: str) -> None:
    path = f"{gcs_prefix}/rows.jsonl"
    write_rows(path, [{"id": "a"}] * 10)
    watch = Watch()
    with watching(watch):
        list(read_rows(path))
    assert watch.places == []
    assert watch.bytes >= 100
