"""Data that were made elsewhere as an output: what is written, what is refused, and back again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import object_stores
import pytest
from one_adoption import adopt_it, by_hand, in_a_process, start, take_back
from one_output import X, claim, make, output, read, snapshot, write

from marin_resources.storage import fault_points
from marin_resources.storage.adoption.adopt import adopt, is_adopted_from
from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.adoption.source import find_source
from marin_resources.storage.completion.partition_markers import marked_partitions
from marin_resources.storage.control import control
from marin_resources.storage.files import remove, remove_folder, sizes_below
from marin_resources.storage.lease import lease, wait
from marin_resources.storage.output import attempts, commit, record, status
from marin_resources.storage.output.commit import State
from marin_resources.storage.output.state_summary import states_of_partitions
from marin_resources.storage.output.store import AlreadyDoneError, Store
from marin_resources.storage.output.verify import verify_output
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output
from marin_resources.types.record import Adoption, Record

OLD = Output(name="raw/old", version="def456", identity="b" * 64)


@pytest.fixture
def store(disk_or_gcs_prefix: str) -> Store:
    return Store(disk_or_gcs_prefix)


@pytest.fixture
def disk(disk_prefix: str) -> Store:
    return Store(disk_prefix)


def adopted(store: Store, what: Output = X) -> Adoption | None:
    return store.look([what])[what].adopted


def data_in(path: str) -> list[str]:
    return sorted(name for name in sizes_below(path) if not name.startswith("."))


def test_data_made_by_hand_are_the_output_where_they_are(any_prefix: str) -> None:
    store = Store(any_prefix)
    mine = by_hand(store)
    adopt_it(store, "mine")
    seen = store.look([X])[X]
    assert (seen.done, seen.path, seen.data_path) == (True, store.locate(X), mine)
    assert seen.adopted is not None
    assert (seen.adopted.path, seen.adopted.why, seen.adopted.by) == (mine, "renamed", "me")
    assert store.data_path(X) == mine
    assert data_in(seen.path) == []
    assert sorted(sizes_below(mine)) == ["a/data.txt"], "nothing is written beside the data"
    assert verify_output(seen.path).ok
    assert not seen.record.has_result
    assert seen.record.duration_s is None
    mark = attempts.read_attempt(seen.path, 1)
    assert (mark["outcome"], mark["adopted"]["from"]) == ("success", mine)
    with pytest.raises(AlreadyDoneError):
        claim(store, 2)
    take_back(store)
    assert not store.look([X])[X].done
    assert sorted(sizes_below(mine)) == ["a/data.txt"]


def test_an_older_output_is_compared_with_its_manifest_and_named(store: Store) -> None:
    old = make(store, OLD)
    source = adopt_it(store, "raw/old-def456")
    assert source.was_checked
    seen = store.look([X])[X]
    assert (seen.data_path, dict(seen.result)) == (old, {"documents": 3})
    assert seen.adopted is not None
    assert (seen.adopted.of["name"], seen.adopted.of["identity"]) == ("raw/old", "b" * 64)
    assert store.look([OLD])[OLD].done


@pytest.mark.parametrize("checksums", [False, True])
def test_an_output_that_is_not_as_its_manifest_says_is_refused(store: Store, checksums: bool) -> None:
    old = make(store, OLD)
    write(old, "data.txt", "DATA")
    with pytest.raises(AdoptionError, match=r"not as its manifest says: corrupted 'data\.txt'"):
        find_source(old, store, X, checksums=checksums)
    remove(join(old, "data.txt"))
    with pytest.raises(AdoptionError, match=r"missing 'data\.txt'"):
        find_source(old, store, X, checksums=checksums)
    assert sizes_below(store.locate(X)) == {}


def test_a_large_output_is_read_only_if_that_is_asked_for(disk: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marin_resources.storage.adoption.source.SMALL_BYTES", 1)
    old = make(disk, OLD)
    write(old, "data.txt", "DATA")
    assert find_source(old, disk, X, checksums=False).was_checked
    with pytest.raises(AdoptionError, match="corrupted"):
        find_source(old, disk, X, checksums=True)


def test_what_is_no_complete_output_is_refused(store: Store) -> None:
    held = claim(store, what=OLD)
    write(held.path, "data.txt", "half")
    for given in (held.path, join(held.path, "part")):
        write(held.path, "part/data.txt", "half")
        with pytest.raises(AdoptionError, match=r"which is not complete|that is not complete: it is being computed by"):
            find_source(given, store, X, checksums=False)
    store.fail(held, {}, "broken", "")
    with pytest.raises(AdoptionError, match="its status is FAILED"):
        find_source(held.path, store, X, checksums=False)
    remove(join(held.path, status.NAME))
    with pytest.raises(AdoptionError, match="it has no status"):
        find_source(held.path, store, X, checksums=False)


def test_a_part_of_a_complete_output_may_be_adopted(store: Store) -> None:
    old = make(store, OLD)
    write(old, "hf/model.bin", "model")
    adopt_it(store, join(old, "hf"))
    assert verify_output(store.locate(X)).ok


def refusals() -> list[Any]:
    def typo(store: Store) -> str:
        return "mime"

    def empty(store: Store) -> str:
        write(join(store.prefix, "void"), ".hidden", "")
        return "void"

    def file(store: Store) -> str:
        return join(by_hand(store), "a/data.txt")

    def above(store: Store) -> str:
        return "raw"

    def of_several(store: Store) -> str:
        make(store, OLD)
        return "../prefix/raw" if is_local(store.prefix) else join(store.prefix, "raw")

    def control_files(store: Store) -> str:
        return join(make(store, OLD), ".marin/attempts")

    cases: list[tuple[str, Callable[[Store], str], str]] = [
        ("nothing", lambda store: " ", "path to adopt is ' '"),
        ("a typo", typo, "Nothing exists at"),
        ("an empty folder", empty, "holds no data file"),
        ("a file", file, "is a file, expected a folder"),
        ("its own path", lambda store: X.relative(), "is the path of 'raw/x' itself"),
        ("a folder inside", lambda store: join(X.relative(), "a"), "is inside"),
        ("a folder around", above, "has .* inside, the path of 'raw/x' itself"),
        ("control files", control_files, "is in a folder '.marin', which holds control files"),
        ("a mirror", lambda store: "mirror://raw/old", "a view of several regions"),
        ("an unknown store", lambda store: "ftp://there/raw", "on an unknown store"),
        ("a folder of outputs", of_several, "inside"),
    ]
    return [pytest.param(given, sentence, id=name) for name, given, sentence in cases]


@pytest.mark.parametrize(("given", "sentence"), refusals())
def test_each_mistake_has_its_sentence_and_leaves_nothing(
    store: Store, given: Callable[[Store], str], sentence: str
) -> None:
    path = given(store)
    with pytest.raises(AdoptionError, match=sentence):
        find_source(path, store, X, checksums=False)
    assert sizes_below(store.locate(X)) == {}


def test_a_folder_with_outputs_inside_is_no_data(store: Store) -> None:
    make(store, Output(name="several/old", version="def456", identity="b" * 64))
    with pytest.raises(AdoptionError, match=r"has the output .* inside"):
        find_source("several", store, X, checksums=False)


def test_a_typo_is_answered_with_the_folder_that_may_be_meant(disk: Store, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        with pytest.raises(AdoptionError, match=f"Did you mean '{tmp_path}/mine'"):
            find_source("mine", disk, X, checksums=False)
    finally:
        os.chdir(before)


def test_data_below_another_spelling_of_the_prefix_are_adopted_at_its_own(disk: Store, tmp_path: Path) -> None:
    mine, link = by_hand(disk), tmp_path / "link"
    link.symlink_to(disk.prefix)
    assert adopt_it(disk, f"{link}/mine").path == mine
    assert adopt_it(Store(str(link)), f"{link}/../link//mine/").path == f"{link}/mine"  # it is adopted already
    assert adopted(disk) == adopted(Store(str(link)))
    part = join(disk.locate(X), "part")
    write(part, "data.txt", "own")
    with pytest.raises(AdoptionError, match="is inside"):
        find_source(f"{link}/{X.relative()}/part", disk, X, checksums=False)


def test_a_link_into_an_output_that_is_not_complete_is_refused(disk: Store, tmp_path: Path) -> None:
    held = claim(disk, what=OLD)
    write(held.path, "part/data.txt", "half")
    (tmp_path / "link").symlink_to(join(held.path, "part"))
    with pytest.raises(AdoptionError, match=r"is inside the output .*, which is not complete"):
        find_source(str(tmp_path / "link"), disk, X, checksums=False)
    held.lease.release()


def test_a_folder_of_this_machine_is_no_data_for_a_bucket(gcs_prefix: str, tmp_path: Path) -> None:
    with pytest.raises(AdoptionError, match="no other machine could read"):
        find_source(str(tmp_path), Store(gcs_prefix), X, checksums=False)


def test_a_link_that_leads_out_of_the_data_is_refused(disk: Store, tmp_path: Path) -> None:
    mine = by_hand(disk)
    (tmp_path / "elsewhere.txt").write_text("x")
    os.symlink(tmp_path / "elsewhere.txt", join(mine, "link.txt"))
    with pytest.raises(AdoptionError, match="a symbolic link to"):
        find_source(mine, disk, X, checksums=False)


def test_an_output_that_is_complete_or_another_version_is_refused(store: Store) -> None:
    make(store)
    source = find_source(by_hand(store), store, X, checksums=False)
    for refuse in (
        lambda: is_adopted_from(source.path, store, X),
        lambda: adopt(store, X, source, {}, why="w", by="me"),
    ):
        with pytest.raises(AdoptionError, match=r"is complete at .* already"):
            refuse()
    other = output(identity="c" * 64)
    with pytest.raises(AdoptionError, match="another version"):
        is_adopted_from("elsewhere", store, other)


def test_an_adopted_output_is_taken_back_before_another_is_adopted(store: Store) -> None:
    adopt_it(store, by_hand(store))
    with pytest.raises(
        AdoptionError, match=r"is adopted from .* already\. Take that back first: the same command with --undo"
    ):
        adopt_it(store, by_hand(store, "other"))


def test_of_an_adopted_output_the_data_are_adopted_so_that_no_chain_arises(store: Store) -> None:
    old = make(store, OLD)
    between = Output(name="raw/between", version="abc123", identity="d" * 64)
    adopt_it(store, old, between)
    adopt_it(store, store.locate(between))
    take_back(store, between)
    seen = store.look([X])[X]
    assert seen.data_path == old
    assert seen.adopted is not None
    assert (seen.adopted.path, seen.adopted.of["name"]) == (old, "raw/old")
    assert verify_output(seen.path).ok


def test_an_output_cannot_be_adopted_from_one_that_is_adopted_from_itself(store: Store) -> None:
    path = make(store)
    adopt_it(store, path, OLD)
    remove(join(path, status.NAME))
    with pytest.raises(AdoptionError, match="is the path of 'raw/x' itself"):
        find_source(store.locate(OLD), store, X, checksums=False)


def test_files_of_a_failed_attempt_are_moved_aside_and_the_next_one_begins_anew(store: Store) -> None:
    held = claim(store)
    write(held.path, "half.txt", "half")
    store.fail(held, {}, "broken", "")
    adopt_it(store, by_hand(store))
    assert data_in(held.path) == []
    assert read(held.path, ".marin/aside/1/half.txt") == "half"
    take_back(store)
    again = claim(store, 4, resumable=True)
    assert (again.data_path, data_in(again.path)) == (held.path, [])


def test_what_was_taken_back_is_missing_and_says_so_in_its_marks(store: Store) -> None:
    mine = by_hand(store)
    adopt_it(store, mine)
    take_back(store)
    path = store.locate(X)
    seen = store.look([X])[X]
    assert (seen.status, seen.record, seen.holder) == (None, Record(), None)
    mark = attempts.read_attempt(path, 2)
    assert (mark["outcome"], mark["undone"]["from"], mark["by"]) == ("undone", mine, "me")
    assert attempts.failures_in_a_row(path, 5) == 0
    assert store.data_path(X) == path
    with pytest.raises(AdoptionError, match="'raw/x' is not adopted"):
        take_back(store)
    make(store, attempt=3)
    assert store.look([X])[X].data_path == path
    with pytest.raises(AdoptionError, match="'raw/x' is not adopted"):
        take_back(store)


def test_an_adoption_is_taken_back_after_its_data_are_gone_and_made_again(store: Store) -> None:
    mine = by_hand(store)
    adopt_it(store, mine)
    remove_folder(mine)
    assert [finding.problem for finding in verify_output(store.locate(X)).findings] == ["missing"]
    take_back(store)
    adopt_it(store, by_hand(store, "other"), why="the first was removed")
    now = adopted(store)
    assert now is not None
    assert now.why == "the first was removed"
    assert attempts.latest_attempt(store.locate(X)) == 3


def test_an_output_without_its_commit_object_can_be_taken_back(store: Store) -> None:
    adopt_it(store, by_hand(store))
    remove(join(store.locate(X), commit.NAME))
    take_back(store)
    assert not store.look([X])[X].done


def test_an_adopted_partition_has_no_marker_so_that_listings_look_at_its_record(store: Store) -> None:
    whole = output()
    one, two = whole.at("2026-01"), whole.at("2026-02")
    make(store, one)
    mine = by_hand(store)
    adopt_it(store, mine, two)
    assert list(marked_partitions(store.prefix, whole)) == ["2026-01"]
    states = {each.key: (each.state, each.adopted) for each in states_of_partitions(store, whole)}
    assert states == {"2026-01": ("complete", ""), "2026-02": ("complete", f"adopted from {mine!r}: renamed")}
    seen = store.look([two])[two]
    store.mark_done(two, seen.record)
    assert list(marked_partitions(store.prefix, whole)) == ["2026-01"]


def test_a_live_writer_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "POLL_S", 0.02)
    monkeypatch.setenv("MARIN_LEASE_TTL_S", "1.5")
    source = find_source(by_hand(store), store, X, checksums=False)
    held = claim(store)
    with pytest.raises(AdoptionError, match="is being computed by process"):
        adopt(store, X, source, {}, why="w", by="me")
    write(held.path, "data.txt", "data")
    store.publish(held, {}, {})
    assert adopted(store) is None


def test_marin_overwriting_the_record_loses_nothing(store: Store) -> None:
    adopt_it(store, by_hand(store))
    path = store.locate(X)
    control.put(join(path, record.NAME), b'{"name": "raw/x"}')
    assert adopted(store) is not None
    assert verify_output(path).ok
    take_back(store)
    assert not store.look([X])[X].done


OF_AN_ADOPTION = (
    *("lease taken", "commit claimed", "attempt marked", "status running", "commit published", "record written"),
    *("status success", "attempt ended", "lease released"),
)


@pytest.fixture
def _short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_LEASE_TTL_S", "10")


def check_killed_adoption(store: Store, point: str) -> None:
    mine = by_hand(store)
    before = snapshot(mine)
    assert in_a_process(store, "adopt", point) == -signal.SIGKILL
    assert in_a_process(store, "adopt") == 0
    seen = store.look([X])[X]
    assert (seen.done, seen.data_path) == (True, mine)
    assert verify_output(seen.path).ok
    assert snapshot(mine) == before
    take_back(store)
    make(store, attempt=attempts.latest_attempt(seen.path) + 1)


def check_killed_undo(store: Store, point: str) -> None:
    mine = by_hand(store)
    adopt_it(store, mine)
    assert in_a_process(store, "undo", point) == -signal.SIGKILL
    path = store.locate(X)
    assert not store.look([X])[X].done
    found = commit.read_commit(path)
    assert found is not None
    if found.state is State.COMMITTED:  # nothing is undone: the same command goes on
        assert in_a_process(store, "undo") == 0
    holder = lease.holder_of(path)
    make(store, attempt=attempts.latest_attempt(path) + 1, stale=holder.generation if holder else None)
    assert store.look([X])[X].data_path == path
    assert read(mine, "a/data.txt") == "by hand"


@pytest.mark.parametrize("point", ["commit claimed", "status running", "commit published", "record written"])
def test_a_killed_adoption_is_completed_by_the_next_one(disk: Store, point: str) -> None:
    check_killed_adoption(disk, point)


@pytest.mark.long
@pytest.mark.usefixtures("_short_leases")
@pytest.mark.parametrize("point", OF_AN_ADOPTION)
def test_a_killed_adoption_is_completed_by_the_next_one_in_a_bucket(gcs_prefix: str, point: str) -> None:
    check_killed_adoption(Store(gcs_prefix), point)


def test_a_run_completes_an_adoption_that_was_killed_after_its_commit(disk: Store) -> None:
    by_hand(disk)
    assert in_a_process(disk, "adopt", "commit published") == -signal.SIGKILL
    with pytest.raises(AlreadyDoneError):
        claim(disk, 2)
    assert adopted(disk) is not None


@pytest.mark.parametrize("point", fault_points.OF_AN_UNDO)
def test_a_killed_undo_is_undone_or_not_at_all(disk: Store, point: str) -> None:
    check_killed_undo(disk, point)


@pytest.mark.long
@pytest.mark.usefixtures("_short_leases")
@pytest.mark.parametrize("point", fault_points.OF_AN_UNDO)
def test_a_killed_undo_is_undone_or_not_at_all_in_a_bucket(gcs_prefix: str, point: str) -> None:
    check_killed_undo(Store(gcs_prefix), point)


@pytest.mark.long
@pytest.mark.usefixtures("_short_leases")
def test_on_s3_a_killed_adoption_and_a_killed_undo_are_completed() -> None:
    check_killed_adoption(Store(object_stores.s3_prefix()), "commit published")
    check_killed_undo(Store(object_stores.s3_prefix()), "status withdrawn")


@pytest.mark.long
def test_of_adopters_and_workers_at_once_exactly_one_completes_the_output(any_prefix: str) -> None:
    """Four processes adopt and four compute, three times."""
    for trial in range(3):
        store = Store(join(any_prefix, str(trial)))
        mine = by_hand(store)
        started = [start(store, verb) for verb in ("adopt", "compute") for _ in range(4)]
        for process in started:
            process.join(120)
        adopters, workers = ([process.exitcode for process in some] for some in (started[:4], started[4:]))
        seen = store.look([X])[X]
        assert seen.done
        assert verify_output(seen.path).ok
        if seen.data_path == mine:
            assert workers.count(0) == 0
            assert adopters.count(0) >= 1, "one of them; another may find that it is adopted from there already"
        else:
            assert (adopters.count(0), workers.count(0)) == (0, 1)
