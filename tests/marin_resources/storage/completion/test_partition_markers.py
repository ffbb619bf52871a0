"""Done-markers of partitions: they count no partition that is not complete."""

from __future__ import annotations

import pytest

from marin_resources.storage.completion.partition_markers import CompletionMarker
from marin_resources.storage.files import names_in, remove_folder, write_bytes
from marin_resources.storage.output.store import Claim, Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output

WHOLE = Output(name="tokenized/web", version="abc123", identity="ab" * 32)
KEYS = ("a", "a.b", "a.b.0123456789abcdef.1.2.3", "b c/d")


@pytest.fixture
def store(disk_or_gcs_prefix: str) -> Store:
    return Store(disk_or_gcs_prefix)


def claim(store: Store, key: str) -> Claim:
    return store.claim(WHOLE.at(key), attempt=1, resumable=False, run_id=None)


def complete(store: Store, key: str, data: bytes = b"1") -> None:
    claimed = claim(store, key)
    write_bytes(join(claimed.path, "value.txt"), data)
    store.publish(claimed, {}, {})


def test_each_complete_partition_is_marked_with_its_size(store: Store) -> None:
    for key in KEYS:
        complete(store, key, key.encode())
    found = store.done_partitions(WHOLE)
    assert {key: (done.files, done.bytes) for key, done in found.items()} == {key: (1, len(key)) for key in KEYS}


def test_a_partition_whose_folder_is_removed_is_not_counted(store: Store) -> None:
    for key in KEYS:
        complete(store, key)
    remove_folder(store.locate(WHOLE.at("a")))
    assert set(store.done_partitions(WHOLE)) == set(KEYS) - {"a"}


def test_a_partition_that_is_computed_again_is_not_counted_until_it_is_complete(store: Store) -> None:
    for key in KEYS:
        complete(store, key)
    remove_folder(store.locate(WHOLE.at("a")))
    again = claim(store, "a")
    assert set(store.done_partitions(WHOLE)) == set(KEYS) - {"a"}
    store.fail(again, {}, "broken", "")
    assert set(store.done_partitions(WHOLE)) == set(KEYS) - {"a"}
    remove_folder(store.locate(WHOLE.at("a")))
    complete(store, "a", b"12345")
    found = store.done_partitions(WHOLE)
    assert set(found) == set(KEYS)
    assert found["a"] == CompletionMarker(files=1, bytes=5, finished_s=found["a"].finished_s)


def test_another_identity_and_foreign_files_are_not_counted(store: Store) -> None:
    complete(store, "a")
    folder = join(store.prefix, ".marin/done/tokenized/web-abc123")
    [marker] = names_in(folder)
    write_bytes(join(folder, "notes.txt"), b"")
    write_bytes(join(folder, marker.replace("abab", "cdcd")), b"")
    assert set(store.done_partitions(WHOLE)) == {"a"}
    other = Output(name=WHOLE.name, version=WHOLE.version, identity="cd" * 32)
    assert store.done_partitions(other) == {}


def test_a_file_is_no_partition(store: Store) -> None:
    for key in ("a", "b"):
        complete(store, key)
    remove_folder(store.locate(WHOLE.at("b")))
    write_bytes(store.locate(WHOLE.at("b")), b"somebody's notes")
    assert store.partitions(WHOLE) == ["a"]
    assert list(store.done_partitions(WHOLE)) == ["a"]
