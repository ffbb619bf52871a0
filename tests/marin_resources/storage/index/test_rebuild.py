"""The markers are lost, wrong or left behind, and are rebuilt from the outputs themselves."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import pytest
from bucket_for_tests import BucketForTests

from marin_resources.storage.completion import markers as marks
from marin_resources.storage.completion import partition_markers as partitions
from marin_resources.storage.files import names_below, remove, remove_folder, write_bytes
from marin_resources.storage.index import rebuild, walk
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.look import look_in_bulk
from marin_resources.storage.index.rebuild import rebuild_marks
from marin_resources.storage.output import record, status
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output, Status, identity_of


def version_of(name: str, seed: int = 1) -> dict[str, Any]:
    return {"name": name, "config": {"seed": seed}, "dependencies": []}


def output_of(version: dict[str, Any], override: str | None = None) -> Output:
    digits = hashlib.md5(json.dumps(version, sort_keys=True).encode()).hexdigest()[:6]
    return Output(name=version["name"], version=digits, identity=identity_of(version), override=override)


def complete(store: Store, version: dict[str, Any], key: str | None = None, attempt: int = 1, **more: Any) -> Output:
    output = output_of(version, more.get("override_output_path"))
    output = output if key is None else output.at(key)
    claimed = store.claim(output, attempt=attempt, resumable=False, run_id=None)
    write_bytes(join(claimed.path, "data/part-0.txt"), b"12345")
    partition = {} if key is None else {"partition": key}
    store.publish(claimed, {"name": output.name, "version": version, **partition, **more}, {"value": 1})
    return output


def markers(prefix: str) -> set[str]:
    folders = (marks.FOLDER, partitions.FOLDER)
    return {f"{folder}/{name}" for folder in folders for name in names_below(join(prefix, folder))}


def lose(prefix: str) -> None:
    for marker in markers(prefix):
        remove(join(prefix, marker))


def test_markers_that_were_lost_come_back_as_they_were(any_prefix: str) -> None:
    store = Store(any_prefix)
    some = [complete(store, version_of(name)) for name in ("top", "raw/a.b-c", "deep/er/step")]
    complete(store, version_of("elsewhere"), override_output_path="kept/it")
    deliveries = [complete(store, version_of("raw/deliveries"), key) for key in ("2026-01", "c d/e", ".hidden")]
    before = markers(any_prefix)
    lose(any_prefix)
    rebuilt = rebuild_marks(any_prefix)
    assert (rebuilt.outputs, rebuilt.complete, rebuilt.written, rebuilt.removed) == (7, 7, 7, 0)
    assert markers(any_prefix) == before
    found = look_in_bulk(store, some, CompleteOutputs(any_prefix))
    assert all(found[output].done and found[output].listed for output in some)
    whole = output_of(version_of("raw/deliveries"))
    assert set(store.done_partitions(whole)) == {delivery.partition for delivery in deliveries}
    again = rebuild_marks(any_prefix)
    assert (again.written, again.removed) == (0, 0)


def test_markers_of_what_is_gone_computed_or_of_another_attempt_are_removed(any_prefix: str) -> None:
    store = Store(any_prefix)
    for name in ("gone", "again", "failed", "stays"):
        complete(store, version_of(name))
    gone, kept = (complete(store, version_of("deliveries"), key) for key in ("a", "b"))
    old = markers(any_prefix)
    for output in (
        output_of(version_of("gone")),
        output_of(version_of("again")),
        output_of(version_of("failed")),
        gone,
    ):
        remove_folder(store.locate(output))
    complete(store, version_of("again"), attempt=2)
    store.fail(store.claim(output_of(version_of("failed")), attempt=2, resumable=False, run_id=None), {}, "no", "")
    for marker in old:  # attempts have removed theirs
        write_bytes(join(any_prefix, marker), b"")
    rebuilt = rebuild_marks(any_prefix)
    assert (rebuilt.outputs, rebuilt.complete, rebuilt.written, rebuilt.removed) == (4, 3, 0, 4)
    assert {mark.attempt for mark in marks.list_marks(any_prefix) if mark.name == "again"} == {2}
    assert {mark.name for mark in marks.list_marks(any_prefix)} == {"again", "stays"}
    assert set(store.done_partitions(output_of(version_of("deliveries")))) == {kept.partition}


def test_marins_outputs_are_marked_where_their_record_says_what_they_are(any_prefix: str) -> None:
    version = version_of("raw/of-marin")
    known = output_of(version)
    for path, written in (
        (known.relative(), {"name": known.name, "version": version, "config": {}}),
        ("raw/older-123456", {"name": "raw/older", "config": {}}),
        ("raw/identified-123456", {"name": "raw/identified", "identity": "a" * 64}),
        ("copy/of/raw/of-marin-000000", {"name": known.name, "version": version}),
    ):
        write_bytes(join(any_prefix, path, record.NAME), json.dumps(written).encode())
        write_bytes(join(any_prefix, path, status.NAME), Status.SUCCESS.encode())
    rebuilt = rebuild_marks(any_prefix)
    assert (rebuilt.complete, rebuilt.written) == (4, 2)
    assert sorted(path.removeprefix(any_prefix) for path in rebuilt.unknown) == [
        "/copy/of/raw/of-marin-000000",
        "/raw/older-123456",
    ]
    assert look_in_bulk(Store(any_prefix), [known], CompleteOutputs(any_prefix))[known].listed


def test_a_damaged_output_is_named_and_its_marker_stays(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    output = complete(store, version_of("a"))
    write_bytes(join(store.locate(output), record.NAME), b"{")
    rebuilt = rebuild_marks(disk_prefix)
    [sentence] = rebuilt.damaged
    assert store.locate(output) in sentence
    assert (rebuilt.removed, len(markers(disk_prefix))) == (0, 1)


def test_an_output_is_not_listed_and_a_circle_of_links_ends(disk_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    output = complete(Store(disk_prefix), version_of("raw/a"))
    os.symlink(disk_prefix, join(disk_prefix, "raw/round"))
    listed: list[str] = []
    real = walk.folders_in
    monkeypatch.setattr(walk, "folders_in", lambda path: (listed.append(path), real(path))[1])
    assert rebuild_marks(disk_prefix).outputs == 1
    assert join(disk_prefix, output.relative()) not in listed


def test_an_output_that_is_computed_again_meanwhile_gets_no_marker(
    disk_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(disk_prefix)
    output = complete(store, version_of("a"))
    lose(disk_prefix)

    def then_claimed(prefix: str) -> Any:
        yield from list(walk.walk(prefix))
        remove_folder(store.locate(output))
        store.claim(output, attempt=2, resumable=False, run_id=None).lease.release()

    monkeypatch.setattr(rebuild, "walk", then_claimed)
    assert rebuild_marks(disk_prefix).written == 0
    assert markers(disk_prefix) == set()


def test_an_output_that_is_completed_meanwhile_keeps_its_marker(
    disk_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(disk_prefix)
    output = complete(store, version_of("a"))
    before = markers(disk_prefix)

    def not_seen(prefix: str) -> Any:
        return (each for each in walk.walk(prefix) if each.output != output)

    monkeypatch.setattr(rebuild, "walk", not_seen)
    assert rebuild_marks(disk_prefix).removed == 0
    assert markers(disk_prefix) == before


def test_in_a_bucket_an_output_costs_two_reads_and_no_listing(gcs_bucket: BucketForTests) -> None:
    store = Store(gcs_bucket.prefix)
    for number in range(20):
        complete(store, version_of(f"raw/s{number}"))
    rebuild_marks(gcs_bucket.prefix)
    before = gcs_bucket.requests_made()
    rebuild_marks(gcs_bucket.prefix)
    assert gcs_bucket.requests_made() - before <= 2 * 20 + 12
