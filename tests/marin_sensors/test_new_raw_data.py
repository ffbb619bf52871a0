"""The sensor on deliveries of raw data, tick by tick on a disk and on GCS."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from bucket_for_tests import BucketForTests
from dagster._core.test_utils import create_run_for_test
from partition_steps import part
from running import definitions_of

from marin_assets import dynamic
from marin_resources.storage.files import remove, write_bytes
from marin_resources.storage.paths import join
from marin_sensors import new_raw_data as module
from marin_sensors.deliveries import tick as ticks
from marin_sensors.deliveries.completeness import Manifested, Marked, Settled
from marin_sensors.new_raw_data import new_raw_data

Tick = Callable[[], dg.SensorResult | dg.SkipReason]


@dg.asset(key=["deliveries", "raw"], partitions_def=dg.DynamicPartitionsDefinition(name="deliveries"))
def raw() -> None: ...


class Clock:
    """The time of the sensor's machine."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def time(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s


class Ticking:
    """A sensor of one instance, ticked by hand as the daemon does it: the cursor is kept after a tick's requests."""

    def __init__(self, sensor: dg.SensorDefinition, instance: dg.DagsterInstance) -> None:
        self.cursor: str | None = None
        self._sensor, self._instance = sensor, instance

    def __call__(self) -> list[str]:
        """The keys that are requested."""
        result = self.look()
        if isinstance(result, dg.SkipReason):
            self.said, self.warned = str(result.skip_message), []
            return []
        self.cursor = result.cursor
        self.said = str(result.skip_reason.skip_message) if result.skip_reason else ""
        self.observed = [str(event.description) for event in result.asset_events]
        assert result.run_requests is not None
        asked = [str(request.partition_key) for request in result.run_requests]
        added = [key for request in result.dynamic_partitions_requests or () for key in request.partition_keys]
        assert asked == added
        self.add(*added)
        return asked

    def add(self, *keys: str) -> None:
        """Add keys to the set, as Dagster does it for a tick."""
        self._instance.add_dynamic_partitions("deliveries", keys)

    def look(self) -> Any:
        context = dg.build_sensor_context(
            instance=self._instance, cursor=self.cursor, definitions=dg.Definitions(assets=[raw])
        )
        self.warned: list[str] = []
        context.log.warning = self.warned.append  # type: ignore[method-assign, assignment]
        return self._sensor(context)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def place(disk_or_gcs_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where deliveries arrive. The prefix of outputs is on the same kind of store."""
    monkeypatch.setenv("MARIN_PREFIX", join(disk_or_gcs_prefix, "outputs"))
    return join(disk_or_gcs_prefix, "deliveries")


@pytest.fixture
def ticking(place: str, clock: Clock) -> Iterator[Callable[..., Ticking]]:
    with dg.DagsterInstance.ephemeral() as instance:

        def make(pattern: str = "{drop}/*.gz", keys: Sequence[str] = (), **options: Any) -> Ticking:
            instance.add_dynamic_partitions("deliveries", keys)
            path = pattern if pattern.startswith("{prefix}") else join(place, pattern)
            sensor = new_raw_data("watch", path, partitions="deliveries", assets=["deliveries/raw"], **options)
            return Ticking(sensor, instance)

        yield make


def delivery(place: str, *names: str, data: bytes = b"1") -> None:
    for name in names:
        write_bytes(join(place, name), data)


def test_a_delivery_that_has_settled_is_requested_once(
    ticking: Callable[..., Ticking], place: str, clock: Clock
) -> None:
    tick = ticking(complete=Settled(100))
    delivery(place, "2026-01/a.gz", "2026-01/notes.txt", "elsewhere.txt")
    assert tick() == []
    assert "1 arriving ('2026-01': it changed less than 100 s ago)" in tick.said
    clock.now_s += 60
    delivery(place, "2026-01/b.gz")
    assert tick() == []
    clock.now_s += 60
    assert tick() == []
    clock.now_s += 60
    assert tick() == ["2026-01"]
    assert tick() == []
    assert tick.said.endswith("1 taken; last new one: '2026-01' at 1970-01-12 13:49 UTC.")


def test_deliveries_that_are_files_and_deliveries_with_a_marker(ticking: Callable[..., Ticking], place: str) -> None:
    files = ticking("{drop}.gz", complete=Settled(0))
    delivery(place, "x.gz", "y.gz", "z.txt", "marked/a.gz")
    assert files() == ["x", "y"]
    marked = ticking(complete=Marked("_SUCCESS"))
    assert marked() == []
    delivery(place, "marked/_SUCCESS")
    assert marked() == ["marked"]
    assert ticking("{drop}/*", complete=Marked("_SUCCESS"))() == ["marked"], "the pattern may match the marker too"


def test_a_delivery_with_a_manifest_is_taken_when_each_file_has_arrived_whole(
    ticking: Callable[..., Ticking], place: str
) -> None:
    tick, whole = ticking(complete=Manifested("SHA256SUMS")), b"x" * 5000
    delivery(place, "a/1.gz", data=whole)
    delivery(place, "a/2.gz", data=whole[:10])
    digest = hashlib.sha256(whole).hexdigest()
    delivery(place, "a/SHA256SUMS", data=f"{digest}  1.gz\n{digest}  2.gz\n".encode())
    assert tick() == []
    assert "1 arriving ('a': '2.gz' has another checksum than 'SHA256SUMS' names, so it has not arrived" in tick.said
    delivery(place, "a/2.gz", data=whole)
    assert tick() == ["a"]


@pytest.mark.timeout(60)
def test_a_fifo_a_socket_and_a_link_to_nothing_hold_up_their_own_delivery_alone(
    ticking: Callable[..., Ticking], tmp_path: Path, place: str
) -> None:
    if "://" in place:
        pytest.skip("only a disk has such things")
    tick = ticking(complete=Settled(0), recheck_s=0)
    delivery(place, "good/1.gz", "pipe/1.gz", "socket/1.gz", "link/1.gz", "loop/1.gz", "beside/1.gz", "deep/1.gz")
    os.mkfifo(Path(place, "pipe/2.gz"))
    os.mkfifo(Path(place, "a.fifo"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        os.rename(tmp_path / "s", Path(place, "socket/2.gz"))
    Path(place, "link/2.gz").symlink_to("/no/such")
    Path(place, "loop/2.gz").symlink_to("2.gz")
    Path(place, "nowhere").symlink_to("/no/such")
    os.mkfifo(Path(place, "beside/notes"))
    Path(place, "deep/sub").symlink_to("/no/such")
    assert tick() == ["beside", "deep", "good"], "what the pattern does not match holds up nothing"
    said = tick.warned
    assert [sentence.partition(":")[0] for sentence in said] == [
        f"The delivery {name!r} cannot be taken" for name in ("link", "loop", "nowhere", "pipe", "socket")
    ]
    assert "'/no/such', which does not exist. Restore that, or remove the link." in said[0]
    assert "2.gz' is a FIFO, expected a file. Move it out of the input." in said[3]
    os.remove(Path(place, "pipe/2.gz"))
    os.mkfifo(Path(place, "good/2.gz"))
    assert tick() == ["pipe"]
    assert (tick(), tick.observed) == ([], [])
    assert any(sentence.startswith("The delivery 'good' cannot be taken") for sentence in tick.warned)
    assert "; and 2 more in the tick's log;" in tick.said
    files = ticking("{drop}.gz", complete=Settled(0))
    delivery(place, "x.gz")
    os.mkfifo(Path(place, "y.gz"))
    assert files() == ["x"]
    assert "The delivery 'y' cannot be taken" in files.warned[0]


def test_a_folder_that_cannot_be_listed_holds_up_its_own_delivery_alone(
    ticking: Callable[..., Ticking], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "://" in place:
        pytest.skip("only on a disk")
    scan = os.scandir

    def scandir(folder: Any) -> Any:  # as for somebody who is not root
        if folder in closed:
            raise PermissionError(13, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    tick = ticking("{drop}/**/*.gz", complete=Settled(0), recheck_s=0)
    delivery(place, "a/1.gz", "a/sub/2.gz", "b/1.gz", "c/1.gz")
    closed = {join(place, "a/sub"), join(place, "b")}
    assert tick() == ["c"]
    assert tick.warned == [
        "The delivery 'a' cannot be taken: 'sub' cannot be read (Permission denied).",
        "The delivery 'b' cannot be taken: it cannot be listed (Permission denied).",
    ]
    closed.clear()
    assert tick() == ["a", "b"]


def test_a_tick_whose_cursor_is_lost_requests_the_same_with_the_same_run_keys(
    ticking: Callable[..., Ticking], place: str
) -> None:
    tick = ticking(complete=Settled(0))
    delivery(place, "a/1.gz", "b/1.gz")
    lost = tick.look()  # the daemon is killed before it keeps the cursor
    again = tick.look()
    keys = [request.run_key for request in lost.run_requests]
    assert keys == [request.run_key for request in again.run_requests] == ["watch: a", "watch: b"]
    assert lost.cursor == again.cursor


def test_what_happens_to_a_delivery_after_it_was_taken_is_told_apart_once(
    ticking: Callable[..., Ticking], place: str, clock: Clock
) -> None:
    tick = ticking(complete=Settled(0), recheck_s=0)
    delivery(place, "a/1.gz", "a/2.gz", "a/3.gz")
    assert tick() == ["a"]
    delivery(place, "a/2.gz", data=b"22")
    delivery(place, "a/4.gz")
    remove(join(place, "a/3.gz"))
    assert tick() == []
    sentence = (
        "The delivery 'a' has changed since it was taken: 1 late ('4.gz'), 1 rewritten ('2.gz'), 1 vanished ('3.gz')."
    )
    assert tick.observed == [sentence]
    assert sentence.rstrip(".") in tick.said
    assert tick() == []
    assert tick.observed == []


def test_a_changed_delivery_is_taken_again_as_a_revision(
    ticking: Callable[..., Ticking], place: str, clock: Clock
) -> None:
    tick = ticking(complete=Settled(100), recheck_s=0, on_change="revise")
    delivery(place, "a/1.gz")
    assert tick() == []
    clock.now_s += 100
    assert tick() == ["a"]
    delivery(place, "a/2.gz")
    assert tick() == []
    assert "It is taken again as revision 2 when it is complete." in tick.observed[0]
    clock.now_s += 100
    assert tick() == ["a@2"]
    clock.now_s += 100
    assert tick() == []


def test_a_delivery_that_is_gone_is_reported_after_two_looks(ticking: Callable[..., Ticking], place: str) -> None:
    tick = ticking(complete=Settled(0))
    delivery(place, "a/1.gz", "b/1.gz")
    assert tick() == ["a", "b"]
    remove(join(place, "a/1.gz"))
    folder = Path(place, "a")
    if folder.exists():
        folder.rmdir()
    assert (tick(), tick.observed) == ([], [])
    assert (tick(), tick.observed) == ([], ["The delivery 'a' is gone from its place."])
    assert (tick(), tick.observed) == ([], [])


def test_a_place_that_is_empty_all_at_once_is_a_skipped_tick(
    ticking: Callable[..., Ticking], place: str, clock: Clock
) -> None:
    tick = ticking(complete=Settled(0))
    delivery(place, "a/1.gz")
    assert tick() == ["a"]
    before = tick.cursor
    remove(join(place, "a/1.gz"))
    folder = Path(place, "a")
    if folder.exists():
        folder.rmdir()
    for _ in range(3):
        assert tick() == []
        assert "any more: 1 delivery known. See that the folder or the bucket is the right one" in tick.said
    assert tick.cursor == before
    delivery(place, "a/1.gz")
    assert tick() == []


def test_a_place_that_is_not_there_is_said_to_be_so(ticking: Callable[..., Ticking], place: str) -> None:
    for pattern in ("{drop}/*.gz", "{drop}.gz"):
        tick = ticking(pattern, complete=Settled(0))
        assert tick() == []
        assert "does not exist: " in tick.said
        assert place in tick.said
        assert "Correct the sensor's path, or create it. The next tick looks again." in tick.said
    delivery(place, "notes.txt")
    assert tick() == []
    assert tick.said.startswith("0 deliveries at ")
    if "://" not in place:
        beside = ticking("notes.txt/{drop}/*.gz", complete=Settled(0))
        assert beside() == []
        assert "notes.txt' is no folder" in beside.said
    delivery(place, "x.gz")
    assert tick() == ["x"]


def test_a_place_under_the_prefix_is_that_of_the_deployment(
    ticking: Callable[..., Ticking], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick = ticking("{prefix}/inbox/{drop}/*.gz", complete=Settled(0))
    delivery(join(place, "other"), "inbox/a/1.gz")
    assert tick() == []
    assert "/inbox/{drop}/*.gz', does not exist: " in tick.said
    monkeypatch.setenv("MARIN_PREFIX", join(place, "other"))
    assert tick() == ["a"]


def test_at_most_so_many_are_taken_in_one_tick_and_none_is_forgotten(
    ticking: Callable[..., Ticking], place: str
) -> None:
    tick = ticking(complete=Settled(0), at_most=2)
    delivery(place, *(f"d{n}/1.gz" for n in range(5)))
    assert [tick(), tick(), tick(), tick()] == [["d0", "d1"], ["d2", "d3"], ["d4"], []]


def test_a_name_that_cannot_be_a_key_is_said_and_holds_nothing_up(ticking: Callable[..., Ticking], place: str) -> None:
    tick = ticking(complete=Settled(0))
    delivery(place, "a...b/1.gz", "good/1.gz")
    assert tick() == ["good"]
    assert tick() == []
    assert "The delivery 'a...b' has '...'" in tick.said


def test_a_delivery_that_differs_in_case_alone_is_not_taken_and_holds_nothing_up(
    ticking: Callable[..., Ticking], place: str
) -> None:
    tick = ticking(complete=Settled(0), keys=["older"])
    delivery(place, "Case/1.gz", "case/1.gz", "Older/1.gz", "other/1.gz")
    assert tick() == ["Case", "other"]
    assert [sentence.partition(", and")[0] for sentence in tick.warned] == [
        "The delivery 'Older' is not taken. The partition key 'Older' is new in the set of partitions",
        "The delivery 'case' is not taken. The partition key 'case' is new in the set of partitions",
    ]
    assert tick() == []
    tick.add("older", "Older")
    assert tick() == ["Older"], "a set that has both already works"


@pytest.mark.parametrize(
    ("assets", "partitions", "sentence"),
    [
        (
            ["deliveries/rw"],
            "deliveries",
            "The sensor's asset 'deliveries/rw' is not in the code location. Did you mean 'deliveries/raw'?",
        ),
        (
            ["deliveries/raw"],
            "other",
            "its asset 'deliveries/raw' has other partitions. Give its step partitions=dynamic('other')",
        ),
    ],
)
def test_assets_that_do_not_fit_are_one_sentence(
    place: str, clock: Clock, instance: dg.DagsterInstance, assets: list[str], partitions: str, sentence: str
) -> None:
    delivery(place, "a/1.gz")
    sensor = new_raw_data("watch", join(place, "{drop}/*"), partitions=partitions, assets=assets, complete=Settled(0))
    tick = Ticking(sensor, instance)
    assert tick() == []
    assert sentence in tick.said


def test_a_state_that_is_damaged_or_gone_is_a_skipped_tick(
    ticking: Callable[..., Ticking], place: str, disk_or_gcs_prefix: str
) -> None:
    tick = ticking(complete=Settled(0))
    delivery(place, "a/1.gz")
    assert tick() == ["a"]
    cursor = json.loads(str(tick.cursor))
    path = join(disk_or_gcs_prefix, "outputs/.marin/sensors/watch", f"{cursor['state']}.json.gz")
    write_bytes(path, b"not gzip")
    assert tick() == []
    assert path in tick.said
    assert "Reset the sensor's cursor" in tick.said
    remove(path)
    assert tick() == []
    assert path in tick.said
    tick.cursor = None
    assert tick() == ["a"]


def test_a_store_that_fails_is_a_skipped_tick_and_the_next_one_catches_up(
    gcs_bucket: BucketForTests, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "outputs"))
    monkeypatch.setattr(ticks, "LISTING_TIMEOUT_S", 10.0)
    place = join(gcs_bucket.prefix, "deliveries")
    sensor = new_raw_data(
        "watch", join(place, "{drop}/*.gz"), partitions="deliveries", assets=["deliveries/raw"], complete=Settled(0)
    )
    with dg.DagsterInstance.ephemeral() as instance:
        tick = Ticking(sensor, instance)
        delivery(place, "a/1.gz")
        assert tick() == ["a"]
        before = tick.cursor
        delivery(place, "b/1.gz")
        gcs_bucket.fail(match="/o", status=403, times=1000)
        assert tick() == []
        assert "could not be listed (" in tick.said
        assert tick.cursor == before
        gcs_bucket.calm()
        assert tick() == ["b"]


def test_a_cursor_of_something_else_is_a_skipped_tick(ticking: Callable[..., Ticking], place: str) -> None:
    tick = ticking(complete=Settled(0))
    delivery(place, "a/1.gz")
    for text in ("not json", '{"other": 1}'):
        tick.cursor = text
        assert tick() == []
        assert "is none of this sensor. Reset it" in tick.said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"assets": []}, "has assets=[]"), ({"on_change": "revize"}, "has on_change='revize', expected 'report'")],
)
def test_a_mistake_in_the_call_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="The sensor 'watch'") as refused:
        new_raw_data("watch", "/x/{drop}/*", **{"partitions": "deliveries", "assets": ["a"], **options})
    assert sentence in str(refused.value)


def test_many_small_deliveries_are_one_run(
    place: str, clock: Clock, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    sensor = new_raw_data(
        "watch", join(place, "{drop}/*.gz"), partitions="deliveries", assets=["parts/raw"], complete=Settled(0),
        runs="together", at_most=3,
    )  # fmt: skip
    definitions = definitions_of([part("raw", dynamic("deliveries"), tmp_path / "calls")])
    cursor: str | None = None

    def tick() -> tuple[list[tuple[str, str]], str]:
        """The ranges that are requested, and what the sensor says."""
        nonlocal cursor
        clock.now_s += 60
        context = dg.build_sensor_context(instance=instance, cursor=cursor, definitions=definitions)
        result: Any = sensor(context)
        cursor = result.cursor
        for request in result.dynamic_partitions_requests:
            instance.add_dynamic_partitions("deliveries", list(request.partition_keys))
        ranges = []
        for request in result.run_requests or ():
            create_run_for_test(instance, job_name="x", status=dg.DagsterRunStatus.STARTED, tags=request.tags)
            tags = request.tags
            ranges.append((tags["dagster/asset_partition_range_start"], tags["dagster/asset_partition_range_end"]))
        return ranges, str(result.skip_reason.skip_message) if result.skip_reason else ""

    def end() -> None:
        for run in instance.get_runs():
            instance.delete_run(run.run_id)

    instance.add_dynamic_partitions("deliveries", ["d3", "old"])
    for number in range(1, 6):
        write_bytes(join(place, f"d{number}", "a.gz"), b"x")
    assert tick() == ([("d3", "d3"), ("d1", "d2")], ""), "d3 is not beside the new ones"
    write_bytes(join(place, "d0", "a.gz"), b"x")
    for _ in range(2):
        ranges, said = tick()
        assert ranges == []
        assert "the run of earlier ones is in progress" in said
    end()
    assert tick() == ([("d0", "d5")], ""), "d0, d4 and d5 follow one another in the set"
    end()
    assert tick()[0] == []


def test_another_way_to_run_is_refused() -> None:
    with pytest.raises(ValueError, match="has runs='all', expected 'each' or 'together'"):
        new_raw_data("watch", "a/{drop}/*", partitions="deliveries", assets=["deliveries/raw"], runs="all")  # type: ignore[arg-type]
