"""The store with data in another region: one home for what decides, and whole outputs where they were computed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import object_stores
import pytest
from one_output import X, output, read, stale_lease, write

from marin_resources.storage import fault_points
from marin_resources.storage.control import control
from marin_resources.storage.files import sizes_below
from marin_resources.storage.lease.protocol import LeaseHeldError
from marin_resources.storage.mirror import copy_record, local_path_of
from marin_resources.storage.output import commit, record, status
from marin_resources.storage.output.region_copies import list_copies, withdraw_copies, write_copies
from marin_resources.storage.output.store import AlreadyDoneError, Claim, Store, StoreError
from marin_resources.storage.output.verify import verify_output
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.record import Record


@dataclass(frozen=True)
class Places:
    home: str
    east: str
    west: str

    @property
    def store(self) -> Store:
        return Store(self.home)

    def claim(self, attempt: int, where: str, *, resumable: bool = False, stale: str | None = None) -> Claim:
        return self.store.claim(
            X, attempt=attempt, resumable=resumable, run_id=None, stale_lease=stale, data_prefix=where
        )

    def make(self, where: str) -> Claim:
        held = self.claim(1, where)
        write(held.data_path, "data.txt", "data")
        self.store.publish(held, {"name": X.name}, {"documents": 3})
        return held


@pytest.fixture(params=["disk", "gcs"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    names = ("home", "east", "west")
    fresh: dict[str, Callable[[str], str]] = {
        "disk": lambda name: str(tmp_path / name),
        "gcs": lambda name: object_stores.gcs_prefix(),
    }
    found = Places(**{name: fresh[request.param](name) for name in names})
    yield found
    for name in names:
        object_stores.forget(getattr(found, name))


def data_in(path: str) -> list[str]:
    return sorted(name for name in sizes_below(path) if not name.startswith("."))


def test_the_region_has_the_data_and_the_home_has_what_decides(places: Places) -> None:
    places.make(places.east)
    home, east = places.store.locate(X), places.store.locate(X, places.east)
    assert (data_in(home), data_in(east)) == ([], ["data.txt"])
    seen = places.store.look([X])[X]
    assert (seen.done, seen.path, seen.data_path, seen.result) == (True, home, east, {"documents": 3})
    assert places.store.data_path(X) == east
    assert verify_output(home).ok


def test_the_region_has_a_whole_output_that_needs_no_home(places: Places) -> None:
    places.make(places.east)
    seen = Store(places.east).look([X])[X]
    assert (seen.done, seen.result) == (True, {"documents": 3})
    verified = verify_output(seen.path)
    assert (verified.ok, verified.files) == (True, 1)


def test_an_output_at_home_is_as_ever(places: Places) -> None:
    places.make(places.home)
    seen = places.store.look([X])[X]
    assert seen.data_path == seen.path
    assert seen.record.data_path is None


def test_a_lost_file_of_the_region_is_found(places: Places) -> None:
    held = places.make(places.east)
    write(held.data_path, "data.txt", "more data")
    assert [finding.name for finding in verify_output(places.store.locate(X)).findings] == ["data.txt"]


def test_two_regions_never_hold_one_output(places: Places) -> None:
    held = places.claim(1, places.east)
    with pytest.raises(LeaseHeldError):
        places.claim(2, places.west)
    write(held.data_path, "data.txt", "data")
    places.store.publish(held, {"name": X.name}, {})
    with pytest.raises(AlreadyDoneError):
        places.claim(2, places.west)


def test_while_it_is_computed_its_data_are_known_to_be_there(places: Places) -> None:
    places.claim(1, places.east)
    assert places.store.data_path(X) == places.store.locate(X, places.east)
    assert places.store.look([X])[X].status is Status.RUNNING


def test_the_next_attempt_in_the_region_resumes_and_one_elsewhere_begins_anew(places: Places) -> None:
    first = places.claim(1, places.east, resumable=True)
    write(first.data_path, "half.txt", "half")
    places.store.fail(first, {}, "broken", "")
    elsewhere = places.claim(2, places.west, resumable=True)
    assert data_in(elsewhere.data_path) == []
    places.store.fail(elsewhere, {}, "broken", "")
    again = places.claim(3, places.east, resumable=True)
    assert read(again.data_path, "half.txt") == "half"


def test_what_cannot_be_resumed_is_moved_aside_in_its_region(places: Places) -> None:
    first = places.claim(1, places.east)
    write(first.data_path, "half.txt", "half")
    places.store.fail(first, {}, "broken", "")
    again = places.claim(2, places.east)
    assert data_in(again.data_path) == []
    assert read(again.data_path, ".marin/aside/1/half.txt") == "half"


def test_files_that_nobody_explains_are_not_touched_in_a_region_either(places: Places) -> None:
    write(places.store.locate(X, places.east), "mine.txt", "mine")
    with pytest.raises(StoreError, match="no mark of an attempt"):
        places.claim(1, places.east)
    assert read(places.store.locate(X, places.east), "mine.txt") == "mine"


def test_a_region_that_computes_anew_no_longer_says_that_it_is_complete(places: Places) -> None:
    """Somebody has removed the output at home, and the data in the region, to compute it again."""
    east = places.make(places.east).data_path
    home = places.store.locate(X)
    for path, names in ((home, sizes_below(home)), (east, ["data.txt"])):
        for name in names:
            found = control.read(join(path, name))
            assert found is not None
            control.delete(join(path, name), expected=found.generation)
    places.claim(1, places.east)
    assert (status.read_status(east), record.read_record(east), commit.read_commit(east)) == (None, None, None)


def test_a_claimant_that_was_paused_withdraws_nothing_of_a_newer_attempt(places: Places) -> None:
    """It has listed the copies, and was taken for dead. By generation the newer ones are others."""
    east = places.make(places.east).data_path
    listed = list_copies(east)
    assert [copy.path.rpartition("/")[2] for copy in listed] == [".executor_status", ".executor_info", "manifest.json"]
    committed = commit.read_commit(east)
    assert committed is not None
    withdraw_copies(listed)
    assert status.read_status(east) is None
    write_copies(east, committed)
    withdraw_copies(listed)
    assert status.read_status(east) is Status.SUCCESS
    assert Store(places.east).look([X])[X].done


def test_what_another_deployment_has_completed_in_a_region_counts_and_is_not_touched(places: Places) -> None:
    """Its home is that region: it knows nothing of ours, and its files are no copies."""
    theirs = Store(places.east)
    held = theirs.claim(X, attempt=1, resumable=False, run_id=None)
    with pytest.raises(StoreError, match="whose MARIN_PREFIX is in that region"):
        places.claim(1, places.east)
    write(held.data_path, "data.txt", "theirs")
    theirs.publish(held, {"name": X.name}, {"documents": 7})
    with pytest.raises(StoreError, match="whose MARIN_PREFIX is in that region"):
        places.claim(2, places.east)
    assert theirs.look([X])[X].done
    fleet = Store(places.home, [places.home, places.east, places.west])
    seen = fleet.look([X])[X]
    assert (seen.done, seen.path, seen.data_path, seen.result) == (True, held.path, held.path, {"documents": 7})
    assert verify_output(seen.path).ok


def test_a_home_that_was_lost_is_no_reason_to_compute_again(places: Places) -> None:
    places.make(places.east)
    seen = Store(places.west, [places.home, places.east]).look([X])[X]
    assert (seen.done, seen.path) == (True, places.store.locate(X, places.east))
    assert Store(places.west, [places.east]).data_path(X) == seen.path


def test_another_version_in_a_region_is_not_taken_for_this_one(places: Places) -> None:
    other = output("b" * 64)
    theirs = Store(places.east)
    held = theirs.claim(other, attempt=1, resumable=False, run_id=None)
    theirs.publish(held, {"name": X.name}, {})
    seen = Store(places.home, [places.east]).look([X])[X]
    assert not seen.done


WORK = """
import sys
from marin_resources.types.output import Output
from marin_resources.storage.paths import join
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.region_copies import list_copies, withdraw_copies, write_copies
from marin_resources.storage.output.store import AlreadyDoneError, Store
from marin_resources.storage.lease.protocol import LeaseHeldError
home, region, attempt = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, output = Store(home), Output(name="raw/x", version="abc123", identity="a" * 64)
try:
    claim = store.claim(output, attempt=attempt, resumable=False, run_id=None, data_prefix=region)
except (AlreadyDoneError, LeaseHeldError):
    print("another")
else:
    write_bytes(join(claim.data_path, "data.txt"), region.encode())
    store.publish(claim, {"name": "raw/x"}, {"region": region})
    print("published")
"""


@pytest.mark.parametrize("point", ["commit published", "region complete", "record written", "status success"])
def test_the_next_run_completes_what_a_publisher_that_died_left(places: Places, point: str) -> None:
    env = {**os.environ, fault_points.VARIABLE: point}
    died = subprocess.run([sys.executable, "-c", WORK, places.home, places.east, "1"], check=False, env=env)
    assert died.returncode == -signal.SIGKILL
    home, east = places.store.locate(X), places.store.locate(X, places.east)
    with pytest.raises(AlreadyDoneError):
        places.claim(2, places.west, stale=stale_lease(home))
    for path in (home, east):
        assert status.read_status(path) is Status.SUCCESS
        assert (record.read_record(path) or Record()).result == {"region": places.east}
    assert data_in(places.store.locate(X, places.west)) == []


def test_of_three_regions_that_race_one_computes(places: Places) -> None:
    """Three processes, each for a region, claim the same attempt of the same output at the same time."""
    regions = [places.home, places.east, places.west]
    racing = [
        subprocess.Popen([sys.executable, "-c", WORK, places.home, region, "1"], stdout=subprocess.PIPE, text=True)
        for region in regions
    ]
    said = [process.communicate(timeout=60)[0].strip() for process in racing]
    assert sorted(said) == ["another", "another", "published"]
    winner = regions[said.index("published")]
    seen = places.store.look([X])[X]
    assert (seen.result, seen.data_path) == ({"region": winner}, places.store.locate(X, winner))
    assert [region for region in regions if data_in(places.store.locate(X, region))] == [winner]


@pytest.mark.parametrize("reader", ["home", "west"])
def test_a_mirror_takes_the_data_from_the_region_that_has_them(
    places: Places, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status at home says that the output is complete, and is not taken for its data."""
    places.make(places.east)
    monkeypatch.setenv("MARIN_PREFIX", getattr(places, reader))
    names = {"us-central2": places.home, "us-east5": places.east, "us-west4": places.west}
    monkeypatch.setenv("MARIN_MIRROR_PREFIXES", ",".join(f"{name}={prefix}" for name, prefix in names.items()))
    path = local_path_of(f"mirror://{X.relative()}")
    assert path == places.store.locate(X, getattr(places, reader))
    assert read(path, "data.txt") == "data"
    assert read(f"mirror://{X.relative()}", "data.txt") == "data"
    for _ in range(2):
        copy_record(f"mirror://{X.relative()}/.executor_info")
    assert record.data_path_of(path) == places.store.locate(X, places.east)
    assert verify_output(places.store.locate(X)).ok
    assert local_path_of(f"mirror://{X.relative()}") == path, "the record makes no output of the copy"
