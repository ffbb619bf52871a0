"""Manifests: the listed files, the coverage of the digest, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marin_resources.storage.control.control import put
from marin_resources.storage.files import write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.manifest.manifest import NAME, Entry, Manifest, ManifestError, read_manifest, take_manifest
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import StoreKind, join, kind_of
from marin_resources.types.output import Output

DATA = {"b.txt": b"bb", "a/x.txt": b"", "a/y.txt": b"yyy", "ünï code.txt": b"u"}
CONTROL = (".executor_status", ".executor_info", ".marin/attempts/1.log", "a/.hidden", ".cache/z")
DIGEST = "267d12c1d370a08e3c6489f008cfebdea89bdfcb52d5cc20bc07bea54daa8157"
"""Of DATA. Records hold it, so it may never change."""
FIRST_DIGEST = "92e27945f3d211436f66fe3a420d6822aa00472edb3fef57c91e5437258658ce"
"""Of b.txt with 2 bytes, in the first format."""
LOGS = ("train.log", "a/worker.log")


def fill(folder: str, files: dict[str, bytes]) -> str:
    for name, data in files.items():
        write_bytes(join(folder, name), data)
    return folder


def commit(folder: str, manifest: Manifest, **fields: object) -> None:
    value = {"format_version": 2, "state": "committed", **manifest.to_json(), **fields}
    put(join(folder, NAME), json.dumps(value).encode())


@pytest.fixture
def folder(any_prefix: str) -> str:
    return fill(join(any_prefix, "output"), {**DATA, **dict.fromkeys((*CONTROL, *LOGS), b"not data")})


def test_a_manifest_lists_data_files_by_name_and_leaves_control_files_and_logs_out(folder: str) -> None:
    taken = take_manifest(folder)
    assert taken.files == (("a/x.txt", 0), ("a/y.txt", 3), ("b.txt", 2), ("ünï code.txt", 1))
    assert (taken.bytes, taken.summary()["files"]) == (6, 4)
    assert all(entry.checksum for entry in taken.entries)


def test_a_trailing_slash_changes_nothing(folder: str) -> None:
    assert take_manifest(f"{folder}/") == take_manifest(folder)


def test_an_output_has_one_digest_on_disk_and_on_gcs(disk_or_gcs_prefix: str) -> None:
    taken = take_manifest(fill(join(disk_or_gcs_prefix, "output"), DATA))
    assert [entry.checksum for entry in taken.entries][:2] == ["crc32c:AAAAAA==", "crc32c:kzIJDw=="]
    assert taken.digest == DIGEST


def test_what_was_uploaded_to_s3_in_parts_is_read(any_prefix: str, tmp_path: Path) -> None:
    path = join(any_prefix, "output/large")
    fs, stored = filesystem_of(path)
    fs.makedirs(join(any_prefix, "output"), exist_ok=True)
    with fs.open(stored, "wb", **({"block_size": 5 << 20} if kind_of(path) is StoreKind.S3 else {})) as file:
        file.write(bytes(5 << 20))
        file.write(bytes(5 << 20))
    [entry] = take_manifest(join(any_prefix, "output")).entries
    assert entry == Entry(name="large", size=10 << 20, checksum="crc32c:CPJwmw==")


def test_without_checksums_no_byte_is_read(tmp_path: Path) -> None:
    folder = fill(str(tmp_path), DATA)
    assert {entry.checksum for entry in take_manifest(folder, checksums=False).entries} == {None}
    assert take_manifest(folder, checksums=False).files == take_manifest(folder).files


def test_the_digest_covers_names_sizes_and_contents_and_not_the_place(tmp_path: Path) -> None:
    def digest(place: str, files: dict[str, bytes]) -> str:
        return take_manifest(fill(str(tmp_path / place), files)).digest

    known = digest("1", {"b": b"bb"})
    assert digest("2", {"b": b"bb"}) == known
    assert len({known, digest("3", {"b": b"bbb"}), digest("4", {"c": b"bb"}), digest("5", {"b": b"cc"})}) == 4


def test_files_of_timings_are_listed_and_left_out_of_the_digest(tmp_path: Path) -> None:
    one = take_manifest(fill(str(tmp_path / "1"), {"model": b"m", "metrics.jsonl": b"1.5 s"}))
    other = take_manifest(fill(str(tmp_path / "2"), {"model": b"m", "metrics.jsonl": b"22.5 s"}))
    assert [entry.name for entry in one.entries] == ["metrics.jsonl", "model"]
    assert one.digest == other.digest
    assert one.digest == Manifest.from_json(one.to_json()).digest


def test_what_was_published_comes_back(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    claim = store.claim(Output(name="x", version="1", identity="i"), attempt=1, resumable=False, run_id=None)
    fill(claim.path, DATA)
    assert read_manifest(claim.path) is None
    store.publish(claim, {}, {})
    published = read_manifest(claim.path)
    assert published is not None
    assert published == take_manifest(claim.path)


def test_a_manifest_of_the_first_format_is_read_and_its_digest_is_what_it_was(tmp_path: Path) -> None:
    first = {"format_version": 1, "files": 1, "bytes": 2, "digest": FIRST_DIGEST}
    put(str(tmp_path / NAME), json.dumps({**first, "entries": [{"name": "b.txt", "size": 2}]}).encode())
    found = read_manifest(str(tmp_path))
    assert found == Manifest(entries=(Entry(name="b.txt", size=2),))
    assert (found.bytes, found.digest) == (2, FIRST_DIGEST)


def test_an_output_of_marins_has_no_manifest(tmp_path: Path) -> None:
    assert read_manifest(str(tmp_path)) is None


def test_an_empty_output_has_an_empty_manifest(any_prefix: str) -> None:
    assert take_manifest(join(any_prefix, "nothing")).files == ()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    commit(str(tmp_path), Manifest(entries=()), format_version=3)
    with pytest.raises(ManifestError, match=r"has format version 3 and this software knows up to 2\. Update"):
        read_manifest(str(tmp_path))


@pytest.mark.parametrize("text", ["[]", "{", '{"format_version": 1}', '{"format_version": 1, "entries": [3]}', "\xff"])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    put(str(tmp_path / NAME), text.encode("latin-1"))
    with pytest.raises(ManifestError, match=r"manifest.json' (is|has) .*The file is damaged; compute the output again"):
        read_manifest(str(tmp_path))


def test_a_manifest_whose_entries_were_changed_is_refused(tmp_path: Path) -> None:
    taken = take_manifest(fill(str(tmp_path), DATA))
    commit(str(tmp_path), taken)
    path = tmp_path / NAME
    path.write_text(path.read_text().replace('"name": "b.txt", "size": 2', '"name": "b.txt", "size": 3'))
    with pytest.raises(ManifestError, match=f"expected '{taken.digest}' as recorded there"):
        read_manifest(str(tmp_path))


def test_long_work_reports_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marin_resources.storage.manifest.bytes_progress.EVERY_S", 0.0)
    said: list[str] = []
    take_manifest(fill(str(tmp_path), DATA), report=said.append)
    assert said[-1].startswith(f"checksums of {tmp_path}: 6 B of 6 B, ")
    assert said[-1].endswith("0 s left")
