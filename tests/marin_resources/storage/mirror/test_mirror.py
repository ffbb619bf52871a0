"""The mirror: a file that is read in a region is copied there once, unchanged."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path
from typing import Any

import fsspec
import mirrors
import pytest
from mirrors import Mirror

from marin_resources.storage.files import list_files, open_atomic, stored_files
from marin_resources.storage.mirror import ChangedError, MirrorError, local_path_of, mirror_filesystem
from marin_resources.storage.paths import is_local, without_scheme
from marin_resources.storage.transfer.account import charged_to
from marin_resources.storage.transfer.budget import spent

DATA = random.Random(0).randbytes(300_000)


def read(path: str) -> bytes:
    with fsspec.open(f"mirror://{path}", "rb") as file:
        return file.read()


def test_a_file_of_another_region_is_copied_here_once(mirror: Mirror) -> None:
    mirror.put("far", "raw/x", DATA)
    account = mirrors.account(mirror, 10**6)
    with charged_to(account):
        assert read("raw/x") == DATA
        assert mirror.get("here", "raw/x") == DATA
        assert read("raw/x") == DATA
    assert spent(account.output_path)["bytes"] <= 1.05 * len(DATA)
    assert [move["from"] for move in spent(account.output_path)["transfers"]] == ["far"]


def test_a_local_file_is_read_without_a_transfer_though_others_differ(mirror: Mirror) -> None:
    mirror.put("here", "raw/x", b"ours")
    mirror.put("near", "raw/x", b"theirs")
    with charged_to(mirrors.account(mirror, 0)):
        assert read("raw/x") == b"ours"


def test_the_cheapest_region_that_has_it_is_read(mirror: Mirror) -> None:
    mirror.put("far", "raw/x", b"far")
    mirror.put("near", "raw/x", b"near")
    mirror.put("far", "raw/y", b"far")
    assert (read("raw/x"), read("raw/y")) == (b"near", b"far")


def test_a_file_in_no_region_is_an_error_with_the_searched_regions(mirror: Mirror) -> None:
    fs = mirror_filesystem()
    for look in (read, fs.cat_file, fs.info, fs.ls, lambda path: local_path_of(f"mirror://{path}")):
        with pytest.raises(FileNotFoundError, match=r"Nothing exists at 'mirror://raw/x' in here \(.*near \(.*far \("):
            look("raw/x")
    assert not fs.exists("raw/x")
    assert fs.glob("raw/*") == []


def test_a_file_is_copied_again_when_its_source_has_changed(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", DATA)
    assert read("raw/x") == DATA
    mirror.put("near", "raw/x", b"other" + DATA)
    assert read("raw/x") == b"other" + DATA
    assert mirror.get("here", "raw/x") == b"other" + DATA
    mirror.put("near", "raw/x", DATA[::-1])
    assert mirror_filesystem().cat_file("raw/x") == DATA[::-1]


def test_a_copy_whose_source_is_gone_stays(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", DATA)
    assert read("raw/x") == DATA
    mirror.remove("near", "raw/x")
    assert read("raw/x") == DATA


def test_a_file_written_over_a_copy_is_local_and_not_copied_again(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", DATA)
    assert read("raw/x") == DATA
    with fsspec.open("mirror://raw/x", "wb") as file:
        file.write(b"ours")
    mirror.put("near", "raw/x", b"theirs")
    assert read("raw/x") == b"ours"


def test_a_copy_in_another_region_that_is_out_of_date_is_not_taken(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.put("far", "raw/x", b"old")
    monkeypatch.setenv("MARIN_REGION", "near")
    assert read("raw/x") == b"old"  # now near has a copy of far's
    monkeypatch.setenv("MARIN_REGION", "here")
    mirror.put("far", "raw/x", b"new")
    assert read("raw/x") == b"new"


def test_a_copy_of_a_copy_is_compared_with_the_first_source(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror.put("far", "raw/x", b"old")
    monkeypatch.setenv("MARIN_REGION", "near")
    read("raw/x")
    monkeypatch.setenv("MARIN_REGION", "here")
    account = mirrors.account(mirror, 100)
    with charged_to(account):
        assert read("raw/x") == b"old"
        assert [move["from"] for move in spent(account.output_path)["transfers"]] == ["near"]
    mirror.put("far", "raw/x", b"new")
    assert read("raw/x") == b"new"


def test_listings_are_the_union_and_cost_and_copy_nothing(mirror: Mirror) -> None:
    mirror.put("here", "raw/x/1.txt", b"here")
    mirror.put("near", "raw/x/1.txt", b"near it is longer")
    mirror.put("near", "raw/x/2.txt", b"22")
    mirror.put("far", "raw/x/deep/3.txt", b"333")
    fs = mirror_filesystem()
    with charged_to(mirrors.account(mirror, 0)):
        assert fs.ls("raw/x", detail=False) == ["raw/x/1.txt", "raw/x/2.txt", "raw/x/deep"]
        assert fs.find("raw") == ["raw/x/1.txt", "raw/x/2.txt", "raw/x/deep/3.txt"]
        assert fs.glob("raw/x/*.txt") == ["raw/x/1.txt", "raw/x/2.txt"]
        assert fs.glob("raw/**/*.txt") == ["raw/x/1.txt", "raw/x/2.txt", "raw/x/deep/3.txt"]
        assert {info["name"]: info["region"] for info in fs.ls("raw/x") if info["type"] == "file"} == {
            "raw/x/1.txt": "here",
            "raw/x/2.txt": "near",
        }
        assert fs.size("raw/x/1.txt") == 4
        assert fs.exists("raw/x/deep/3.txt")
        assert fs.isdir("raw/x/deep")
        assert fs.isfile("raw/x/2.txt")
        assert list_files("mirror://raw/x") == [f"mirror://raw/x/{n}" for n in ("1.txt", "2.txt", "deep/3.txt")]
    assert mirror.files("here") == {"raw/x/1.txt": 4}


def test_what_a_listing_gives_of_a_file_is_the_same_before_and_after_it_is_copied(mirror: Mirror) -> None:
    mirror.put("near", "raw/x/1", DATA)
    before = stored_files("mirror://raw/x")
    assert read("raw/x/1") == DATA
    assert stored_files("mirror://raw/x") == before


def test_a_mirrors_notes_are_not_listed(mirror: Mirror) -> None:
    mirror.put("near", "raw/x/1", DATA)
    read("raw/x/1")
    fs = mirror_filesystem()
    assert fs.find("raw") == fs.ls("raw/x", detail=False) == ["raw/x/1"]


def test_writing_is_local_alone(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", DATA)
    with open_atomic("mirror://new/a") as file:
        file.write(b"whole")
    fs = mirror_filesystem()
    fs.pipe_file("new/b", b"b")
    fs.cp_file("new/b", "new/c")
    fs.mv("new/c", "new/d")
    assert {name: mirror.get("here", name) for name in mirror.files("here")} == {
        "new/a": b"whole",
        "new/b": b"b",
        "new/d": b"b",
    }
    assert list(mirror.files("near")) == ["raw/x"]
    with pytest.raises(FileNotFoundError):
        fs.rm_file("raw/x")
    read("raw/x")
    fs.rm("new", recursive=True)
    fs.rm("raw/x")
    assert mirror.files("here") == {}
    assert read("raw/x") == DATA


def test_a_small_part_is_read_remotely_and_charged_by_its_bytes(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", DATA)
    account = mirrors.account(mirror, 1000)
    fs = mirror_filesystem()
    with charged_to(account):
        assert fs.cat_file("raw/x", start=100, end=200) == DATA[100:200]
        assert fs.cat_file("raw/x", start=-100) == DATA[-100:]
    assert spent(account.output_path)["bytes"] == 200
    assert mirror.files("here").keys() <= {os.path.relpath(account.output_path, mirror.here) + "/.marin/transfers.json"}
    assert fs.cat_file("raw/x", start=100, end=100_000) == DATA[100:100_000]
    assert mirror.get("here", "raw/x") == DATA


def test_an_open_file_reads_parts_remotely_and_is_copied_when_they_add_up(mirror: Mirror) -> None:
    data = random.Random(1).randbytes(4_000_000)
    mirror.put("near", "raw/x", data)
    account = mirrors.account(mirror, 10**7)
    with charged_to(account), fsspec.open("mirror://raw/x", "rb") as file:
        file.seek(-1000, io.SEEK_END)
        assert file.read() == data[-1000:]
        file.seek(10)
        assert file.read(10) == data[10:20]
        assert spent(account.output_path)["bytes"] < 0.05 * len(data)
        assert "raw/x" not in mirror.files("here")
        file.seek(0)
        assert file.read() == data
        assert "raw/x" in mirror.files("here")
    assert len(data) <= spent(account.output_path)["bytes"] < 1.05 * len(data)


def test_a_file_that_is_replaced_between_its_parts_is_never_read_mixed(mirror: Mirror) -> None:
    data = random.Random(1).randbytes(4_000_000)
    mirror.put("near", "raw/x", data)
    with fsspec.open("mirror://raw/x", "rb") as file:
        file.seek(10)
        assert file.read(10) == data[10:20]
        mirror.put("near", "raw/x", data[::-1])
        file.seek(0)
        with pytest.raises(ChangedError, match="was replaced while it was read"):
            file.read()


def test_status_and_record_are_read_remotely_and_never_copied(mirror: Mirror) -> None:
    mirror.put("near", "raw/x/.executor_status", b"SUCCESS")
    mirror.put("near", "raw/x/.marin/manifest.json", b"{}")
    assert read("raw/x/.executor_status") == b"SUCCESS"
    assert mirror_filesystem().cat_file("raw/x/.marin/manifest.json") == b"{}"
    with pytest.raises(MirrorError, match="is a control file of another region"):
        local_path_of("mirror://raw/x/.executor_status")
    assert mirror.files("here") == {}


def test_nothing_is_copied_into_an_output_of_this_region(mirror: Mirror) -> None:
    mirror.put("here", "raw/x/.executor_status", b"RUNNING")
    mirror.put("near", "raw/x/1", DATA)
    with pytest.raises(MirrorError, match="'raw/x' is an output with a status of its own"):
        read("raw/x/1")
    with pytest.raises(MirrorError, match="'raw/x' is an output with a status of its own"):
        local_path_of("mirror://raw/x")
    assert list(mirror.files("here")) == ["raw/x/.executor_status"]


def test_a_folder_is_copied_as_a_whole_and_its_plain_path_given(mirror: Mirror) -> None:
    for number in range(5):
        mirror.put("near", f"raw/x/a/{number}", DATA[: 1000 * number])
    mirror.put("far", "raw/x/b", b"b")
    mirror.put("here", "raw/x/a/1", b"ours")
    account = mirrors.account(mirror, 10**6)
    with charged_to(account):
        assert local_path_of("mirror://raw/x") == f"{mirror.here}/raw/x"
        assert local_path_of("mirror://raw/x/a/4") == f"{mirror.here}/raw/x/a/4"
    expected = {f"a/{n}": DATA[: 1000 * n] for n in range(5)} | {"b": b"b", "a/1": b"ours"}
    assert {name: mirror.get("here", f"raw/x/{name}") for name in expected} == expected
    told = {(m["from"], m["path"]): (m["files"], m["bytes"]) for m in spent(account.output_path)["transfers"]}
    assert told == {("near", "mirror://raw/x"): (4, 9000), ("far", "mirror://raw/x"): (1, 1)}


def test_other_paths_are_returned_unchanged() -> None:
    assert local_path_of("/a/b") == "/a/b"
    assert local_path_of("gs://bucket/b") == "gs://bucket/b"


def test_a_changed_folder_is_copied_again_where_it_changed(mirror: Mirror) -> None:
    mirror.put("near", "raw/x/1", b"one")
    mirror.put("near", "raw/x/2", b"two")
    local_path_of("mirror://raw/x")
    mirror.put("near", "raw/x/2", b"changed")
    mirror.put("near", "raw/x/3", b"three")
    account = mirrors.account(mirror, 100)
    with charged_to(account):
        local_path_of("mirror://raw/x")
    assert [mirror.get("here", f"raw/x/{n}") for n in (1, 2, 3)] == [b"one", b"changed", b"three"]
    assert spent(account.output_path)["bytes"] == len(b"changedthree")


def test_an_output_is_taken_from_one_region_where_it_is_complete(mirror: Mirror) -> None:
    for region, status, count in (("near", b"RUNNING", 2), ("far", b"SUCCESS", 3)):
        mirror.put(region, "tok/x/.executor_status", status)
        for number in range(count):
            mirror.put(region, f"tok/x/{number}", region.encode())
    local_path_of("mirror://tok/x")
    assert [mirror.get("here", f"tok/x/{n}") for n in range(3)] == [b"far"] * 3
    assert "tok/x/.executor_status" not in mirror.files("here")


def test_an_output_that_no_region_has_complete_is_not_copied(mirror: Mirror) -> None:
    mirror.put("near", "tok/x/.executor_status", b"RUNNING")
    mirror.put("near", "tok/x/1", b"1")
    with pytest.raises(FileNotFoundError):
        local_path_of("mirror://tok/x")
    assert mirror.files("here") == {}


def test_a_path_that_leads_out_of_the_prefix_is_refused(folders: Mirror) -> None:
    with pytest.raises(MirrorError, match=r"'mirror://raw/\.\./\.\./x' has '\.' or '\.\.' in it"):
        local_path_of("mirror://raw/../../x")


def test_a_full_path_below_a_regions_prefix_means_the_same_place_in_all(folders: Mirror) -> None:
    folders.put("far", "raw/x", b"far")
    assert local_path_of(f"mirror://{folders.here}/raw/x") == f"{folders.here}/raw/x"
    assert folders.get("here", "raw/x") == b"far"


def test_a_file_goes_to_a_local_path_and_back(mirror: Mirror, tmp_path: Path) -> None:
    mirror.put("near", "raw/x/1", DATA)
    fs = mirror_filesystem()
    fs.get_file("raw/x/1", str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == DATA
    fs.get("raw/x", str(tmp_path / "folder"), recursive=True)
    assert (tmp_path / "folder/1").read_bytes() == DATA
    fs.put_file(str(tmp_path / "got"), "raw/y")
    assert mirror.get("here", "raw/y") == DATA


def test_arrow_reads_a_parquet_file_through_it(mirror: Mirror) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": list(range(50_000)), "text": [f"document {n * n}" for n in range(50_000)]})
    with fsspec.open(
        f"{mirror.far}/raw/x.parquet", "wb", **({"auto_mkdir": True} if is_local(mirror.far) else {})
    ) as f:
        pq.write_table(table, f, row_group_size=1000)
    fs = mirror_filesystem()
    with fs.open("raw/x.parquet") as file:
        assert pq.ParquetFile(file).metadata.num_rows == 50_000
    assert pq.read_table("raw/x.parquet", filesystem=fs) == table


def test_tensorstore_reads_an_array_at_its_plain_path(mirror: Mirror) -> None:
    import numpy as np
    import tensorstore as ts

    def opened(path: str, **options: Any) -> Any:
        bucket, _, key = without_scheme(path).partition("/")
        kvstore = (
            {"driver": "gcs", "bucket": bucket, "path": key} if not is_local(path) else {"driver": "file", "path": path}
        )
        return ts.open({"driver": "zarr3", "kvstore": kvstore}, **options).result()

    numbers = np.arange(10_000, dtype=np.int32)
    opened(f"{mirror.far}/tok/cache", create=True, dtype=ts.int32, shape=[10_000]).write(numbers).result()
    assert (opened(local_path_of("mirror://tok/cache")).read().result() == numbers).all()
    assert mirror.files("here") == mirror.files("far")


def test_this_mirror_replaces_levanters() -> None:
    pytest.importorskip("rigging.filesystem")
    mirror_filesystem()
    assert type(fsspec.filesystem("mirror")).__module__ == "marin_resources.storage.mirror.filesystem"
