"""What is kept and why, what is proposed and in which order; and what a pin keeps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import toy_steps
from bucket_for_tests import BucketForTests

from marin_assets import InputName, Step
from marin_assets.documents.snapshots import SnapshotPartition, write_snapshot
from marin_assets.inspection.gc.actions import collect, purge_expired
from marin_assets.inspection.gc.proposals import Choice, Proposals
from marin_assets.inspection.gc.survey import Definitions, look
from marin_assets.step.graph import build_graph
from marin_assets.step.values import ConfigError
from marin_resources.storage.collect.pins import Pin, write_pin
from marin_resources.storage.collect.withdraw import Terms
from marin_resources.storage.completion import packs
from marin_resources.storage.files import remove_folder, write_bytes, write_json
from marin_resources.storage.output.notes.collection import list_collected
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.storage.usage.cost_estimate import PriceList
from marin_resources.types.output import Output, identity_of
from marin_resources.types.versioned_json import ControlFileError

NOTHING = Definitions(graph=build_graph([]), unknown=())
ALL = Choice(keep_days=0)
NOW = datetime.now(UTC)


def output(name: str, partition: str | None = None) -> Output:
    whole = Output(name=name, version="abc123", identity=identity_of({"name": name}))
    return whole if partition is None else whole.at(partition)


def make(store: Store, name: str, partition: str | None = None, *, size: int = 10, **facts: Any) -> str:
    """Complete one output; returns its path below the prefix."""
    what = output(name, partition)
    claim = store.claim(what, attempt=1, resumable=False, run_id=None)
    write_bytes(join(claim.path, "data.bin"), b"x" * size)
    reads = [store.locate(output(each)) for each in facts.pop("reads", ())]
    store.publish(claim, {"name": name, "prefix": store.prefix, "dependencies": reads, **facts}, {})
    return what.relative()


def propose(
    store: Store, choice: Choice = ALL, definitions: Definitions = NOTHING, prices: PriceList | None = None
) -> Proposals:
    return look(store, definitions, choice, prices or PriceList()).proposals


def names(found: Proposals) -> list[str]:
    return [each.stored.relative for each in found.proposed]


def ran(store: Store, outputs: Sequence[str], days_ago: float, name: str = "mine", **step: Any) -> None:
    """An experiment's file, as its run wrote it."""
    at = (NOW - timedelta(days=days_ago)).isoformat()
    steps = [{"output_path": join(store.prefix, each), **step} for each in outputs]
    write_json(
        join(store.prefix, "experiments", f"{name}-012345.json"),
        {"prefix": store.prefix, "created_date": at, "steps": steps},
    )


def kept(found: Proposals) -> Mapping[str, str]:
    return {path: reason.kind for path, reason in found.kept.items()}


def test_what_an_experiment_names_is_kept_until_its_last_run_is_old(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    for name in ("raw/a", "raw/b"):
        make(store, name)
    make(store, "raw/parts", "2026-01")
    ran(store, ["raw/a-abc123", "raw/parts-abc123"], days_ago=5)
    found = propose(store, Choice(keep_days=0.0))
    assert sorted(names(found)) == ["raw/a-abc123", "raw/b-abc123", "raw/parts-abc123/2026-01"]
    last_uses = {each.stored.relative: each.last_use for each in found.proposed}
    assert all(each is not None for each in last_uses.values())
    found = look(store, NOTHING, Choice(keep_days=6), PriceList())
    assert found.roots.kept.why("raw/a-abc123").kind == "by experiments"
    assert found.roots.kept.why("raw/parts-abc123/2026-01").kind == "by experiments"
    assert kept(found.proposals)["raw/b-abc123"] == "recent"


def test_a_path_that_an_experiment_has_in_a_config_is_kept(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    make(store, "raw/a")
    make(store, "raw/b")
    ran(store, [], days_ago=1)
    ran(store, ["raw/x-abc123"], 1, config={"path": join(store.prefix, "raw/a-abc123/data.bin"), "word": "raw"})
    found = look(store, NOTHING, Choice(keep_days=2), PriceList())
    assert found.roots.kept.why("raw/a-abc123") is not None
    assert found.roots.kept.why("raw/b-abc123") is None


def test_what_the_definitions_reach_is_kept(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    read = make(store, "raw/hard")
    config = toy_steps.ToyConfig(input_path=InputName.hardcoded(f"{read}/data.bin"))  # type: ignore[arg-type]
    step = Step(name="raw/mine", fn=toy_steps.make, config=config)
    graph = build_graph([step])
    mine = graph[step].output
    claim = store.claim(mine, attempt=1, resumable=False, run_id=None)
    store.publish(claim, {}, {})
    found = propose(store, definitions=Definitions(graph=graph, unknown=()))
    assert kept(found) == {read: "by definitions", mine.relative(): "by definitions"}


def test_a_pin_keeps_what_its_output_was_made_from(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    make(store, "raw/a")
    make(store, "raw/b", reads=["raw/a"])
    make(store, "raw/c", reads=["raw/b"])
    make(store, "raw/d")
    pin = Pin(output="raw/c-abc123", why="the paper", by="ann", at="2026-01-01T00:00:00+00:00")
    write_pin(store.prefix, pin)
    found = propose(store)
    assert names(found) == ["raw/d-abc123"]
    assert found.kept["raw/a-abc123"].sentence == "raw/c-abc123 was made from it, which is pinned by ann: the paper"
    write_pin(store.prefix, Pin(output="raw/c-abc123", why="the paper", by="ann", at=pin.at, alone=True))
    assert kept(propose(store)) == {"raw/c-abc123": "by pins"}


def test_a_snapshot_keeps_its_partitions_also_while_it_is_collected(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    one, two = (make(store, "raw/parts", key) for key in ("1", "2"))
    listed = output("snapshots/s", "now")
    claim = store.claim(listed, attempt=1, resumable=False, run_id=None)
    write_snapshot(claim.path, [SnapshotPartition(key="1", path=join(store.prefix, one), digest=None)])
    store.publish(claim, {"fn_name": "marin_assets.stages.snapshot.take_snapshot:take_snapshot"}, {})
    found = propose(store)
    assert kept(found) == {one: "by snapshots"}
    assert set(names(found)) == {two, listed.relative()}
    done = list(collect(store, found.proposed, Terms(by="me", grace=timedelta(days=1))))
    assert not any(each.kept for each in done)
    assert kept(propose(store)) == {one: "by snapshots"}


def test_adopted_data_are_kept_where_they_are(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    source = make(store, "raw/old")
    adopted = {"from": join(store.prefix, source), "why": "renamed"}
    make(store, "raw/new", adopted=adopted, data_path=join(store.prefix, source, "part"))
    assert kept(propose(store)) == {source: "by adoptions", "raw/new-abc123": "by adoptions"}


def test_what_an_attempt_at_work_reads_is_kept_and_not_purged(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    read, other = make(store, "raw/a"), make(store, "raw/b")
    list(collect(store, propose(store).proposed, Terms(by="me", grace=timedelta(0))))
    reads = [join(store.prefix, read, "data.bin")]
    held = store.claim(output("raw/reader"), attempt=1, resumable=False, run_id=None, reads=reads)
    found = look(store, NOTHING, ALL, PriceList())
    done = {each.relative: each for each in purge_expired(store, found.stored.collected, found.roots, NOW)}
    assert done == {}  # the time when they were collected is later
    later = datetime.now(UTC) + timedelta(hours=1)  # NOW is that of the import, hours ago in a long run
    done = {each.relative: each for each in purge_expired(store, found.stored.collected, found.roots, later)}
    assert done[read].kept.startswith("it is needed: read by raw/reader-abc123, which is computed by process")
    assert (done[other].kept, done[other].bytes > 10) == ("", True)
    store.publish(held, {}, {})


SPELLINGS = ("{p}", "{link}", "{p}/../{name}", "/{p}", "{p}/", "file://{p}", "FILE://{link}", "~/{name}")
"""Of a prefix on a disk."""


@pytest.fixture(params=SPELLINGS)
def spelled(request: pytest.FixtureRequest, disk_prefix: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Another spelling of `disk_prefix`."""
    p = Path(disk_prefix)
    p.mkdir(exist_ok=True)
    link = p.parent / "link"
    link.symlink_to(p)
    monkeypatch.setenv("HOME", str(p.parent))
    monkeypatch.chdir(p.parent)
    return str(request.param).format(p=p, link=link, name=p.name)


@pytest.mark.parametrize("swapped", [False, True])
def test_what_is_needed_under_one_spelling_of_the_prefix_is_kept_under_another(
    disk_prefix: str, spelled: str, swapped: bool
) -> None:
    theirs, ours = (disk_prefix, spelled) if swapped else (spelled, disk_prefix)
    store, other = Store(ours), Store(theirs)
    source, read, config, needed, free = (make(store, f"raw/{each}") for each in ("a", "r", "c", "n", "free"))
    make(store, "raw/new", adopted={"from": join(theirs, source), "why": "renamed"}, data_path=f"{theirs}/{source}")
    pinned = make(other, "raw/p", reads=["raw/n"])
    write_pin(store.prefix, Pin(output=pinned, why="kept", by="me", at="2026-01-01"))
    reads = [f"{theirs}/{read}/data.bin"]
    held = other.claim(output("raw/reader"), attempt=1, resumable=False, run_id=None, reads=reads)
    ran(store, ["raw/x-abc123"], -1, config={"path": f"{theirs}/{config}/data.bin"})
    assert kept(propose(store)) == {
        source: "by adoptions",
        "raw/new-abc123": "by adoptions",
        read: "at work",
        config: "by experiments",
        pinned: "by pins",
        needed: "by pins",
    }
    assert names(propose(store)) == [free]
    held.lease.release()


@pytest.mark.parametrize("text", ["outputs/raw/a-abc123/data.bin", "../x/raw/a-abc123", "./raw/a-abc123"])
def test_a_relative_path_in_a_config_is_kept_from_whichever_folder_it_is_meant(disk_prefix: str, text: str) -> None:
    store = Store(disk_prefix)
    make(store, "raw/a")
    ran(store, ["raw/x-abc123"], 1, config={"path": text})
    assert look(store, NOTHING, Choice(keep_days=2), PriceList()).roots.kept.why("raw/a-abc123") is not None


def test_data_behind_a_link_inside_the_prefix_are_kept_by_either_name(disk_prefix: str, tmp_path: Path) -> None:
    store = Store(disk_prefix)
    for name in ("raw/a", "raw/b", "raw/c"):
        make(store, name)
    elsewhere = tmp_path / "elsewhere-abc123"
    shutil.move(join(store.prefix, "raw/a-abc123"), elsewhere)
    Path(join(store.prefix, "raw/a-abc123")).symlink_to(elsewhere)
    Path(join(store.prefix, "shortcut")).symlink_to(join(store.prefix, "raw/b-abc123"))
    ran(store, ["raw/x-abc123"], 1, config={"one": f"{elsewhere}/data.bin"})
    reads = [join(store.prefix, "shortcut/data.bin")]
    held = store.claim(output("raw/reader"), attempt=1, resumable=False, run_id=None, reads=reads)
    found = look(store, NOTHING, Choice(keep_days=2), PriceList()).roots.kept
    assert found.why("raw/a-abc123") is not None
    assert found.why("raw/b-abc123") is not None
    assert found.why("raw/c-abc123") is None
    held.lease.release()


def test_an_experiment_that_ran_before_the_collection_does_not_keep_it_from_the_purge(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    made = make(store, "raw/a")
    ran(store, [made], days_ago=1)
    list(collect(store, propose(store).proposed, Terms(by="me", grace=timedelta(0))))
    found, later = look(store, NOTHING, Choice(), PriceList()), datetime.now(UTC) + timedelta(minutes=1)
    assert found.roots.kept.why(made).kind == "by experiments"
    ran(store, [made], days_ago=-1)
    again = look(store, NOTHING, Choice(), PriceList())
    [done] = purge_expired(store, again.stored.collected, again.roots, later)
    assert done.kept.startswith("it is needed: of the experiment")
    [done] = purge_expired(store, found.stored.collected, found.roots, later)
    assert done.kept == ""
    assert list_collected(store.prefix) == []


def test_the_cheapest_to_make_again_come_first_for_each_byte(disk_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(disk_prefix)
    for name, size, hours in (("raw/small", 10, 0), ("raw/big", 5000, 0), ("raw/trained", 9000, 2.0)):
        make(store, name, size=size, ledger={"device_hours": hours})
    found = propose(store)
    assert [each.rpartition("-")[0] for each in names(found)][-1] == "raw/trained"
    seconds = [each.cost.seconds / each.stored.bytes for each in found.proposed[:2]]  # type: ignore[operator]
    assert seconds == sorted(seconds)


def test_what_marin_itself_has_made_is_collected_only_if_it_is_named(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    path = join(store.prefix, "raw/theirs-0a1b2c")
    write_bytes(join(path, ".executor_info"), json.dumps({"name": "raw/theirs"}).encode())
    write_bytes(join(path, ".executor_status"), b"SUCCESS")
    assert names(propose(store)) == []
    assert names(propose(store, Choice(keep_days=0, patterns=("raw/theirs-0a1b2c",)))) == ["raw/theirs-0a1b2c"]
    with pytest.raises(ConfigError, match="'raw/their' finds no complete output"):
        propose(store, Choice(keep_days=0, patterns=("raw/their",)))


def test_an_output_that_was_removed_by_hand_is_not_proposed(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    remove_folder(join(store.prefix, make(store, "raw/a")))
    assert names(propose(store)) == []


@pytest.mark.parametrize("file", ["experiments/x-012345.json", ".marin/pins/raw/a-abc123.json", ".marin/live/0.json"])
def test_without_a_file_of_what_is_needed_nothing_is_proposed(disk_prefix: str, file: str) -> None:
    store = Store(disk_prefix)
    make(store, "raw/a")
    write_bytes(join(store.prefix, file), b"{")
    with pytest.raises(ControlFileError, match=file):
        propose(store)


def test_a_damaged_record_stops_no_other_output_and_its_copy_says_what_it_was_made_from(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    source, other = make(store, "raw/source"), make(store, "raw/other")
    model = make(store, "raw/model", reads=["raw/source"])
    write_pin(store.prefix, Pin(output=model, why="a paper", by="me", at=NOW.isoformat()))
    write_bytes(join(store.prefix, model, ".executor_info"), b"[")
    found = look(store, NOTHING, ALL, PriceList())
    assert names(found.proposals) == [other]
    assert kept(found.proposals)[source] == "by pins"
    assert ([*found.stored.damaged], found.stored.unknown) == ([model], set())


@pytest.mark.parametrize("partition", [None, "2026-01"])
def test_a_record_that_no_file_has_keeps_what_is_older_and_nothing_that_is_newer(
    disk_prefix: str, partition: str | None
) -> None:
    store = Store(disk_prefix)
    older, broken = make(store, "raw/older"), make(store, "raw/broken", partition)
    for marker in [each for each in Path(store.prefix, ".marin").rglob("*/raw/**/*") if each.is_file()]:
        name, _, seconds = marker.name.rpartition(".")
        marker.rename(marker.with_name(f"{name}.{int(seconds) - 100}"))  # complete before the next one
    newer = make(store, "raw/newer")
    for file in (".executor_info", ".marin/manifest.json"):
        write_bytes(join(store.prefix, broken, file), b"[")
    found = look(store, NOTHING, ALL, PriceList())
    assert names(found.proposals) == [newer]
    assert kept(found.proposals) == {older: "by damage", broken: "by damage"}
    assert found.stored.unknown == {broken}


@pytest.mark.long
def test_a_look_at_many_outputs_takes_few_requests(gcs_bucket: BucketForTests) -> None:
    store = Store(gcs_bucket.prefix)
    for number in range(packs.FEWEST_RECORDS):
        make(store, f"raw/s{number}")
    ran(store, ["raw/s0-abc123"], days_ago=1)
    first = propose(store, Choice(keep_days=0))
    before = gcs_bucket.requests_made()
    second = propose(store, Choice(keep_days=0))
    assert names(first) == names(second)
    assert len(names(second)) == packs.FEWEST_RECORDS
    assert gcs_bucket.requests_made() - before <= 16
