"""Thousands of outputs by few requests: the states are those that a look at each of them finds."""

from __future__ import annotations

import pytest
from bucket_for_tests import BucketForTests

from marin_resources.storage.completion import packs
from marin_resources.storage.completion.markers import FOLDER, list_marks
from marin_resources.storage.files import names_in, remove_folder, write_bytes
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.look import look_in_bulk
from marin_resources.storage.output import status
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output, Status, identity_of


def outputs(count: int) -> list[Output]:
    return [
        Output(name=f"tokenized/{i % 3}/s{i}", version=f"{i:06x}", identity=identity_of({"i": i})) for i in range(count)
    ]


def complete(store: Store, some: list[Output]) -> None:
    for output in some:
        claimed = store.claim(output, attempt=1, resumable=False, run_id=None)
        write_bytes(join(claimed.path, "value.txt"), b"1")
        store.publish(claimed, {"config": {"name": output.name}, "source_digest": source()}, {"documents": 3})


def source() -> dict[str, object]:
    return {"function": "m:f", "digest": "d", "files_digest": "f", "modules": {"m": "d"}}


def look(store: Store, some: list[Output]) -> dict[Output, Observed]:
    return look_in_bulk(store, some, CompleteOutputs(store.prefix))


def test_a_bulk_look_finds_what_a_look_at_each_output_finds(any_prefix: str) -> None:
    store, (done, other, failed, removed, never) = Store(any_prefix), outputs(5)
    complete(store, [done, removed])
    # the six digits of `other` are taken by another version
    complete(store, [Output(name=other.name, version=other.version, identity="ff" * 32)])
    store.fail(store.claim(failed, attempt=1, resumable=False, run_id=None), {}, "ValueError: no", "")
    remove_folder(store.locate(removed))
    asked = [done, other, failed, removed, never]
    found, exact = look(store, asked), store.look(asked)
    assert {each: found[each].listed for each in asked} == {each: each in (done, removed, never) for each in asked}
    for each in asked:
        assert (found[each].status, found[each].match) == (exact[each].status, exact[each].match)
        assert found[each].path == exact[each].path
    assert found[done].record.to_dict() == {
        key: value for key, value in exact[done].record.to_dict().items() if key != "result"
    }


def test_an_output_whose_status_is_gone_is_not_complete_to_the_run(disk_prefix: str) -> None:
    """A plan goes by the marker and says so; the run reads the status."""
    store, [one] = Store(disk_prefix), outputs(1)
    complete(store, [one])
    write_bytes(join(store.locate(one), status.NAME), b"FAILED")
    assert look(store, [one])[one].listed
    assert store.look([one])[one].status is Status.FAILED


def test_an_output_that_is_computed_has_no_marker_until_it_is_complete_again(disk_or_gcs_prefix: str) -> None:
    store, [one] = Store(disk_or_gcs_prefix), outputs(1)
    complete(store, [one])
    remove_folder(store.locate(one))
    claimed = store.claim(one, attempt=1, resumable=False, run_id=None)
    assert list_marks(store.prefix) == []
    found = look(store, [one])[one]
    assert (found.done, found.status, found.holder is not None) == (False, Status.RUNNING, True)
    store.publish(claimed, {}, {})
    assert [mark.is_of(one) for mark in list_marks(store.prefix)] == [True]


def test_outputs_without_a_marker_get_one_from_the_first_look(disk_or_gcs_prefix: str) -> None:
    """Those of Marin, and of an earlier version of this software."""
    store, some = Store(disk_or_gcs_prefix), outputs(6)
    complete(store, some)
    remove_folder(join(store.prefix, FOLDER.partition("/")[0], "complete"))
    first, second = look(store, some), look(store, some)
    assert not any(each.listed for each in first.values())
    assert all(each.done for each in first.values())
    assert all(each.listed for each in second.values())


@pytest.mark.long
def test_the_records_of_many_outputs_are_read_from_a_pack(gcs_bucket: BucketForTests) -> None:
    store, some = Store(gcs_bucket.prefix), outputs(packs.FEWEST_RECORDS)
    complete(store, some)
    first = look(store, some)
    [pack] = names_in(join(store.prefix, packs.FOLDER))
    before = gcs_bucket.requests_made()
    second = look(store, some)
    made = gcs_bucket.requests_made() - before
    assert first == second
    assert all(each.record.to_dict()["source_digest"] == source() for each in second.values())
    assert made <= 8  # markers, three folders, the list of packs, the pack
    assert pack.endswith(packs.SUFFIX)


@pytest.mark.parametrize("damage", [b"", b"not gzip", b"\x1f\x8b\x08\x00" + b"\x00" * 40])
def test_a_damaged_pack_costs_time_and_nothing_else(disk_prefix: str, damage: bytes, caplog) -> None:
    store, some = Store(disk_prefix), outputs(packs.FEWEST_RECORDS)
    complete(store, some)
    first = look(store, some)
    [pack] = names_in(join(store.prefix, packs.FOLDER))
    write_bytes(join(store.prefix, packs.FOLDER, pack), damage)
    assert look(store, some) == first
    assert f"{packs.FOLDER}/{pack}' is damaged" in caplog.text


def test_packs_are_joined_when_they_are_many_and_forget_what_is_gone(disk_prefix: str) -> None:
    store, some = Store(disk_prefix), outputs(40)
    complete(store, some)
    records = CompleteOutputs(store.prefix)
    found = records.records(records.marks)
    for begin in range(0, 40, 4):
        packs.write_packs(store.prefix, {mark.file: found[mark] for mark in records.marks[begin : begin + 4]})
    remove_folder(store.locate(some[0]))
    claimed = store.claim(some[0], attempt=1, resumable=False, run_id=None)
    look(store, some)
    [pack] = packs.names_of_packs(store.prefix)
    packed = packs.read_packs(store.prefix, [pack])
    assert len(packed) == 39
    assert not any(file.startswith(f"{some[0].name}-") for file in packed)
    claimed.lease.release()


def test_a_prefix_without_the_right_to_write_is_looked_at_all_the_same(disk_prefix: str, monkeypatch) -> None:
    store, some = Store(disk_prefix), outputs(packs.FEWEST_RECORDS)
    complete(store, some)

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(packs, "write_bytes", refuse)
    assert all(each.listed for each in look(store, some).values())


def test_the_versions_of_a_step_are_known_the_newest_first(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    versions = [Output(name="raw/x", version=f"{i:06x}", identity=identity_of({"i": i})) for i in range(3)]
    for output in versions:
        claimed = store.claim(output, attempt=1, resumable=False, run_id=None)
        store.publish(claimed, {}, {})
    found = CompleteOutputs(store.prefix)
    finished = {mark.version: mark.finished_s for mark in found.by_name["raw/x"]}
    assert list(finished.values()) == sorted(finished.values(), reverse=True)
    assert len(finished) == 3
