"""The slices of a cluster on the Google Cloud of the tests: they come, are replaced, and go, each of them once."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import requests
from fake_google.adapter import InProcess, session
from fake_google.server import FakeGoogle
from fake_google.world import Delays, World

from marin_resources.clusters.catalogue import find_cluster
from marin_resources.clusters.cluster import Cluster
from marin_resources.infra import google as requests_to_google
from marin_resources.infra.google import Google, GoogleError
from marin_resources.infra.slices.controller import OWNED_S, Controller, Pass, Report
from marin_resources.infra.slices.decide import CREATE_TIMEOUT_S, JOIN_TIMEOUT_S
from marin_resources.infra.slices.desired_state import Wanted, WantedError, change, load, path_of
from marin_resources.infra.slices.queued_resources import Phase, Slices
from marin_resources.infra.slices.status import status_of

EVERY_S = 60.0
"""Between two passes."""


class Killed(BaseException):
    """The process ends here."""


class Lab:
    """A cluster whose prefix is a folder, a Google Cloud, and a clock that a test advances."""

    def __init__(self, folder: Path, delays: Delays | None = None) -> None:
        self.now_s = 1_800_000_000.0
        self.cluster: Cluster = dataclasses.replace(find_cluster("us-central2"), prefix=str(folder / "prefix"))
        self.world = World(
            now=lambda: self.now_s, delays=delays or Delays(boot_s=120, provisioning_s=60, deletion_s=90)
        )
        self.google = FakeGoogle(folder, self.world)
        self.google.identity.add_account(self.cluster.worker_account)
        self.world.subnetworks[self.cluster.subnetwork_path] = self.cluster.network
        self.path = path_of(self.cluster)

    def slices(self, before: Callable[[str], None] | None = None, after: Callable[[str], None] | None = None) -> Slices:
        return Slices(self.cluster, Google(session(InProcess(self.google, before, after))))

    def controller(self, slices: Slices | None = None, **given: object) -> Controller:
        return Controller(self.cluster, slices or self.slices(), now=lambda: self.now_s, **given)  # type: ignore[arg-type]

    def add(self, type: str, count: int, capacity: str = "spot", reservation: str = "") -> Wanted:
        return change(self.path, lambda wanted: wanted.add(type, capacity, reservation, count))

    def passes(self, controller: Controller, count: int = 12) -> list[Report]:
        reports = []
        for _ in range(count):
            reports.append(controller.step())
            self.now_s += EVERY_S
        self.world.settle()
        return reports

    def ready(self) -> list[str]:
        """The slices that are up, by their names."""
        self.world.settle()
        return sorted(path.rpartition("/")[2] for path, node in self.world.nodes.items() if node["state"] == "READY")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_to_google, "PAUSE_S", 0.0)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_slices_come_as_they_are_wanted(lab: Lab) -> None:
    lab.add("v4-8", 2)
    lab.add("v4-64", 1, "reserved", "marin-v4")
    lab.add("v4-16", 1, "on-demand")
    reports = lab.passes(lab.controller())
    assert lab.ready() == [
        "us-central2-v4-16-3-1",
        "us-central2-v4-64-2-1",
        "us-central2-v4-8-0-1",
        "us-central2-v4-8-1-1",
    ]
    assert reports[-1].settled
    assert {each.phase for each in reports[-1].there} == {Phase.UP}
    tiers = {
        queued["tpu"]["nodeSpec"][0]["node"]["acceleratorType"]: (
            "spot" in queued,
            queued.get("guaranteed"),
            queued.get("reservationName"),
        )
        for queued in lab.world.queued.values()
    }
    where = "projects/marin-example/locations/us-central2-b"
    assert tiers["v4-8"] == (True, None, None)
    assert tiers["v4-16"] == (False, {}, None)
    assert tiers["v4-64"] == (False, {}, f"{where}/reservations/marin-v4")


def test_no_slice_has_an_address_outside_and_no_request_a_secret(lab: Lab) -> None:
    lab.world.secrets["RAY_AUTH_TOKEN"] = "the-token"
    lab.add("v4-16", 1)
    lab.passes(lab.controller())
    [node] = lab.world.nodes.values()
    assert node["networkConfig"]["enableExternalIps"] is False
    assert not any("accessConfig" in each for each in node["networkEndpoints"])
    assert node["serviceAccount"]["email"].startswith("marin-worker@")
    assert "the-token" not in str(node)
    assert not re.search(r"token=|TOKEN=[^p]", node["metadata"]["startup-script"])


def test_a_preempted_slice_is_replaced_by_the_next_one(lab: Lab) -> None:
    lab.add("v4-8", 1)
    controller = lab.controller()
    lab.passes(controller)
    lab.google.tpu.preempt("us-central2-v4-8-0-1")
    reports = lab.passes(controller)
    assert lab.ready() == ["us-central2-v4-8-0-2"]
    assert [report.replaced for report in reports if report.replaced] == [
        (("us-central2-v4-8-0-1", "preempted, or deleted by hand"),)
    ]
    assert len(lab.world.queued) == 1


def test_what_google_cannot_make_is_asked_for_again_later_and_later(lab: Lab) -> None:
    lab.add("v4-8", 1)
    controller = lab.controller()
    asked: list[float] = []
    for _ in range(40):
        report = controller.step()
        for action in report.done:
            if action.slot is not None:
                asked.append(lab.now_s)
                lab.google.tpu.fail(action.name, "Quota limit 'TPUV4sPreemptiblePodPerProject' has been exceeded.")
        lab.now_s += EVERY_S
    pauses = [second - first for first, second in itertools.pairwise(asked)]
    assert len(pauses) >= 4
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 4 * pauses[0]
    [slot] = load(lab.path)[0].slots
    assert slot.why == "Quota limit 'TPUV4sPreemptiblePodPerProject' has been exceeded."


def test_a_slice_that_does_not_join_is_replaced_and_one_that_has_is_not(lab: Lab) -> None:
    lab.add("v4-8", 2)
    joined = {"us-central2-v4-8-0-1": 1}
    controller = lab.controller(joined=lambda: joined)
    lab.passes(controller, int(JOIN_TIMEOUT_S / EVERY_S) + 15)
    assert lab.ready() == ["us-central2-v4-8-0-1", "us-central2-v4-8-1-2"]
    assert load(lab.path)[0].slots[1].why == "no host joined the cluster within 30 minutes"


def test_a_head_that_was_started_again_costs_no_old_slice(lab: Lab) -> None:
    lab.add("v4-16", 2)
    names = ["us-central2-v4-16-0-1", "us-central2-v4-16-1-1"]
    all_of_them = dict.fromkeys(names, 2)
    head: dict[str, dict[str, int] | None] = {"knows": all_of_them}
    controller = lab.controller(joined=lambda: head["knows"])
    lab.passes(controller, 100)
    for knows in (None, {}, {names[0]: 1}):  # it is away, is up without a host, and the hosts come back
        head["knows"] = knows
        lab.passes(controller, 10)
    head["knows"] = all_of_them
    lab.passes(controller, 100)
    assert lab.ready() == names


def test_a_slice_that_lacks_a_host_is_replaced(lab: Lab) -> None:
    lab.add("v4-16", 1)
    lab.passes(lab.controller(joined=lambda: {"us-central2-v4-16-0-1": 1}), int(JOIN_TIMEOUT_S / EVERY_S) + 15)
    assert lab.ready() == ["us-central2-v4-16-0-2"]
    assert load(lab.path)[0].slots[0].why == "only 1 of 2 hosts joined the cluster within 30 minutes"


def test_while_the_head_is_away_nobody_is_replaced(lab: Lab) -> None:
    lab.add("v4-8", 2)
    lab.passes(lab.controller(joined=lambda: None), 100)
    assert lab.ready() == ["us-central2-v4-8-0-1", "us-central2-v4-8-1-1"]


def test_a_bad_host_costs_its_slice_alone(lab: Lab) -> None:
    lab.add("v4-8", 2)
    bad: dict[str, str] = {}
    controller = lab.controller(bad=lambda names: bad)
    lab.passes(controller)
    bad["us-central2-v4-8-1-1"] = "a chip does not answer"
    lab.passes(controller)
    assert lab.ready() == ["us-central2-v4-8-0-1", "us-central2-v4-8-1-2"]


def test_steps_leave_a_slice_with_a_bad_host_before_it_is_replaced(lab: Lab) -> None:
    lab.add("v4-8", 2)
    bad, used = dict[str, str](), set[str]()
    asked: list[tuple[str, ...]] = []

    def drain(names: Sequence[str]) -> set[str]:
        asked.append(tuple(names))
        return used

    controller = lab.controller(bad=lambda names: bad, drain=drain)
    lab.passes(controller)
    assert asked == []
    name = "us-central2-v4-8-1-1"
    bad[name] = "a chip does not answer"
    used.add(name)
    reports = lab.passes(controller, 10)
    assert [report.drained for report in reports if report.drained] == [((name, "a chip does not answer"),)]
    assert asked == [(name,)] * 10  # again, as a host that has come back takes steps
    assert lab.ready() == ["us-central2-v4-8-0-1", name]
    [line] = [line for line in status_of(lab.cluster, lab.slices().all(), None, lab.now_s).lines if line.name == name]
    assert (line.state, line.why) == ("is up", "steps leave it since 600 s, as it has a bad host")
    used.clear()
    lab.passes(controller)
    assert lab.ready() == ["us-central2-v4-8-0-1", "us-central2-v4-8-1-2"]


def test_a_slice_with_a_bad_host_that_steps_do_not_leave_is_replaced_after_an_hour(lab: Lab) -> None:
    lab.add("v4-8", 2)
    name = "us-central2-v4-8-1-1"
    controller = lab.controller(bad=lambda names: {name: "no"} if name in names else {}, drain=lambda names: {name})
    lab.passes(controller, 50)
    assert name in lab.ready()
    lab.passes(controller, 30)
    assert lab.ready() == ["us-central2-v4-8-0-1", "us-central2-v4-8-1-2"]


def test_a_report_that_is_withdrawn_ends_the_drain(lab: Lab) -> None:
    lab.add("v4-8", 2)
    name = "us-central2-v4-8-1-1"
    bad = {name: "no"}
    controller = lab.controller(bad=lambda names: bad, drain=lambda names: {name})
    lab.passes(controller)
    assert load(lab.path)[0].slots[1].draining_since is not None
    bad.clear()
    lab.passes(controller, 1)
    assert load(lab.path)[0].slots[1].draining_since is None
    lab.passes(controller, 80)
    assert name in lab.ready()


def test_while_the_head_is_away_no_bad_host_costs_a_slice(lab: Lab) -> None:
    lab.add("v4-8", 2)
    controller = lab.controller(bad=lambda names: dict.fromkeys(names[:1], "no"), drain=lambda names: None)
    lab.passes(controller, 20)
    assert lab.ready() == ["us-central2-v4-8-0-1", "us-central2-v4-8-1-1"]


def test_if_most_slices_are_reported_none_is_replaced(lab: Lab) -> None:
    """As with an image whose driver is broken: it fails everywhere."""
    lab.add("v4-8", 3)
    controller = lab.controller(bad=lambda names: dict.fromkeys(names[:2], "TPU initialization failed"))
    reports = lab.passes(controller, 20)
    assert len(lab.ready()) == 3
    assert all(name.endswith("-1") for name in lab.ready())
    assert [report.doubtful for report in reports if report.doubtful] == [
        "2 of 3 slices are reported for bad hosts, and none is replaced: more likely the image or the steps are "
        "broken. A report says: TPU initialization failed"
    ]


def test_a_slice_that_google_creates_for_ever_is_replaced(tmp_path: Path) -> None:
    lab = Lab(tmp_path, Delays(boot_s=1e9))
    lab.add("v4-8", 1)
    controller = lab.controller()
    lab.passes(controller, 30)
    name = "us-central2-v4-8-0-1"
    [line] = status_of(lab.cluster, lab.slices().all(), None, lab.now_s).lines
    assert (line.state, line.why) == ("is created", "since 1740 s")
    lab.world.delays.boot_s = 120
    reports = lab.passes(controller, int(CREATE_TIMEOUT_S / EVERY_S))
    assert [report.replaced for report in reports if report.replaced] == [((name, "was not created within 2 hours"),)]
    assert lab.ready() == ["us-central2-v4-8-0-2"]
    assert "starting_since" not in Path(lab.path).read_text()  # earlier software reads it


def test_fewer_are_wanted_and_none(lab: Lab) -> None:
    lab.add("v4-8", 3)
    controller = lab.controller()
    lab.passes(controller)
    change(lab.path, lambda wanted: dataclasses.replace(wanted, slots=wanted.slots[:1]))
    lab.passes(controller)
    assert lab.ready() == ["us-central2-v4-8-0-1"]
    change(lab.path, lambda wanted: dataclasses.replace(wanted, slots=()))
    lab.passes(controller)
    assert lab.world.nodes == lab.world.queued == {}


def test_of_two_controllers_one_works_and_the_other_takes_over(lab: Lab) -> None:
    lab.add("v4-8", 1)
    first, second = lab.controller(), lab.controller()
    assert first.step().ended is Pass.DONE
    assert second.step().ended is Pass.STANDBY
    lab.now_s += OWNED_S + 1  # the first one is killed
    assert second.step().ended is Pass.DONE
    assert first.step().ended is Pass.STANDBY
    second.release()
    assert first.step().ended is Pass.DONE


def test_slices_of_other_clusters_and_other_people_are_left_alone(lab: Lab) -> None:
    other = dataclasses.replace(lab.cluster, name="us-central2-big")
    change(path_of(other), lambda wanted: wanted.add("v4-8", "spot", "", 1))
    others = Controller(other, Slices(other, Google(session(InProcess(lab.google)))), now=lambda: lab.now_s)
    lab.passes(others)
    lab.add("v4-8", 1)
    controller = lab.controller()
    lab.passes(controller)
    change(lab.path, lambda wanted: dataclasses.replace(wanted, slots=()))
    lab.passes(controller)
    assert lab.ready() == ["us-central2-big-v4-8-0-1"]


def test_a_file_that_was_lost_costs_no_slice(lab: Lab) -> None:
    lab.add("v4-8", 2)
    lab.passes(lab.controller())
    Path(lab.path).unlink()
    lab.now_s += OWNED_S
    lab.passes(lab.controller())
    lab.add("v4-8", 1)
    lab.passes(lab.controller())
    assert lab.ready() == ["us-central2-v4-8-0-1", "us-central2-v4-8-1-1", "us-central2-v4-8-2-1"]


def test_an_earlier_file_that_was_restored_takes_up_what_is_there(lab: Lab) -> None:
    lab.add("v4-8", 1)
    controller = lab.controller()
    lab.passes(controller)
    earlier = Path(lab.path).read_bytes()
    lab.google.tpu.preempt("us-central2-v4-8-0-1")
    lab.passes(controller)
    Path(lab.path).write_bytes(earlier)
    lab.passes(controller)
    assert lab.ready() == ["us-central2-v4-8-0-2"]
    assert load(lab.path)[0].slots[0].incarnation == 2


@pytest.mark.parametrize("text", ["", "{", '{"format": 1}', '{"format": 1, "slots": [{"x": 1}]}', '{"format": 2}'])
def test_a_damaged_file_changes_nothing(lab: Lab, text: str) -> None:
    lab.add("v4-8", 1)
    lab.passes(lab.controller())
    Path(lab.path).write_text(text)
    with pytest.raises(WantedError, match=re.escape(lab.path)):
        lab.controller().step()
    assert lab.ready() == ["us-central2-v4-8-0-1"]


def test_a_request_that_google_refuses_stops_no_other(lab: Lab) -> None:
    lab.add("v4-8", 1)
    lab.add("v4-16", 1)
    lab.cluster = dataclasses.replace(lab.cluster, worker_account="nobody")
    report = lab.controller().step()
    assert len(report.refused) == 2
    assert (
        "Service account 'nobody@marin-example.iam.gserviceaccount.com' does not exist (HTTP 400)." in report.refused[0]
    )


def test_a_request_that_google_refuses_is_sent_later_and_later_with_the_count(lab: Lab) -> None:
    lab.add("v4-8", 1)
    lab.world.accounts.clear()
    sent: list[float] = []
    controller = lab.controller(
        lab.slices(before=lambda called: sent.append(lab.now_s) if called.startswith("POST") else None)
    )
    reports = lab.passes(controller, 6 * 60)
    assert len(sent) == 16
    pauses = [second - first for first, second in itertools.pairwise(sent)]
    assert pauses[:6] == [60, 120, 240, 480, 960, 1800]
    assert set(pauses[6:]) == {1800}
    said = [sentence for report in reports for sentence in report.refused]
    assert said[1].endswith("does not exist (HTTP 400). Refused 2 times for us-central2-v4-8-0-1; again in 120 s.")
    status = status_of(lab.cluster, lab.slices().all(), {}, lab.now_s)
    [line] = status.lines
    assert line.state == "is refused"
    assert re.fullmatch(rf"{len(sent)} times, again in \d+ s: .*does not exist \(HTTP 400\)\.", line.why)
    assert status.amiss
    lab.google.identity.add_account(lab.cluster.worker_account)
    lab.passes(lab.controller(), 40)
    assert lab.ready() == ["us-central2-v4-8-0-1"]
    assert load(lab.path)[0].refused == ()


def test_a_deletion_that_google_refuses_is_sent_later_and_later(lab: Lab) -> None:
    lab.add("v4-8", 2)
    lab.passes(lab.controller())
    change(lab.path, lambda wanted: dataclasses.replace(wanted, slots=wanted.slots[:1]))
    sent: list[float] = []

    def refuse(called: str) -> None:
        if called.startswith("DELETE"):
            sent.append(lab.now_s)
            raise requests.ConnectionError("the connection was reset")

    lab.passes(lab.controller(lab.slices(before=refuse)), 60)
    assert len(set(sent)) == 6
    lab.now_s += OWNED_S
    lab.passes(lab.controller(), 40)
    assert lab.ready() == ["us-central2-v4-8-0-1"]


def test_a_controller_that_stands_still_inside_a_request_takes_its_late_slice_back(lab: Lab) -> None:
    lab.add("v4-8", 1)
    other, stood_still = lab.controller(), list[str]()

    def stand_still(called: str) -> None:
        """Google gets the request when the slot has come to its next slice by another controller."""
        if called.startswith("POST") and not stood_still:
            stood_still.append(called)
            lab.now_s += OWNED_S + 1
            lab.passes(other, 10)
            lab.google.tpu.preempt("us-central2-v4-8-0-1")
            lab.passes(other, 10)
            assert lab.ready() == ["us-central2-v4-8-0-2"]

    stalled = lab.controller(lab.slices(before=stand_still))
    stalled.step()
    assert stood_still
    late = [queued for path, queued in lab.world.queued.items() if path.endswith("-0-1")]
    assert [queued["state"]["state"] for queued in late] == ["DELETING"]
    for _ in range(20):
        lab.passes(other, 1)
        look(lab)
    assert lab.ready() == ["us-central2-v4-8-0-2"]


def test_a_controller_that_is_replaced_sends_no_request_again(lab: Lab) -> None:
    lab.add("v4-8", 1)
    sent: list[str] = []

    def lose(called: str) -> None:
        if called.startswith("POST"):
            sent.append(called)
            lab.now_s += OWNED_S + 1
            raise requests.ConnectionError("no answer")

    report = lab.controller(lab.slices(before=lose)).step()
    assert len(sent) == 1
    assert "no answer" in report.refused[0]


def drawn_schedule(folder: Path, seed: int) -> None:
    """A controller that is killed before and after any request, and begun again, while Google does what Google does."""
    draw = random.Random(seed)
    delays = Delays(
        boot_s=draw.choice([0, 30, 300]),
        provisioning_s=draw.choice([0, 90]),
        deletion_s=draw.choice([0, 45, 200]),
        listing_s=draw.choice([0, 0, 100]),
    )
    lab = Lab(folder, delays)
    wanted: Counter[str] = Counter()
    bad: dict[str, str] = {}

    def fault(called: str) -> None:
        look(lab)
        if draw.random() < 0.06:
            raise Killed(called)
        if draw.random() < 0.06:
            raise requests.ConnectionError("the connection was reset")

    def want(kind: str) -> None:
        count = draw.randint(1, 3)
        lab.add(kind, count)
        wanted[kind] += count

    want("v4-8")
    controllers = [lab.controller(lab.slices(fault, fault), bad=lambda names: bad) for _ in range(2)]
    for _ in range(60):
        which = draw.randrange(2)
        try:
            controllers[which].step()
        except Killed:
            controllers[which] = lab.controller(lab.slices(fault, fault), bad=lambda names: bad)
        except GoogleError:
            pass
        event = draw.random()
        up = lab.ready()
        if event < 0.1 and up:
            lab.google.tpu.preempt(draw.choice(up))
        elif event < 0.15 and up:
            bad[draw.choice(up)] = "a chip does not answer"
        elif event < 0.2 and lab.world.queued:
            name = draw.choice(sorted(lab.world.queued)).rpartition("/")[2]
            if (
                lab.world.queued[f"projects/marin-example/locations/us-central2-b/queuedResources/{name}"]["state"][
                    "state"
                ]
                == "ACCEPTED"
            ):
                lab.google.tpu.fail(name, "no capacity")
        elif event < 0.25:
            lab.world.capacity["us-central2-b", "v4-8"] = draw.randint(0, 4)
        elif event < 0.3:
            want(draw.choice(["v4-8", "v4-16"]))
        lab.now_s += draw.choice([1, 30, 60, 400])
        look(lab)
    lab.world.capacity.clear()
    last = lab.controller()
    lab.now_s += 2 * OWNED_S
    lab.passes(last, 80)
    assert Counter(re.sub(r"^us-central2-(v4-\d+)-.*", r"\1", name) for name in lab.ready()) == wanted
    assert len(lab.world.queued) == len(lab.world.nodes) == wanted.total()
    change(lab.path, lambda found: dataclasses.replace(found, slots=()))
    lab.passes(last, 20)
    assert lab.world.nodes == lab.world.queued == {}


def look(lab: Lab) -> None:
    """No slot has two slices at any moment."""
    slots = Counter(re.sub(r"-\d+$", "", path.rpartition("/")[2]) for path in lab.world.nodes)
    assert not [slot for slot, count in slots.items() if count > 1], slots


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 200), marks=pytest.mark.long)], ids=["5", "195"])
def test_a_controller_that_dies_anywhere_neither_leaks_nor_doubles_a_slice(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        (tmp_path / str(seed)).mkdir()
        drawn_schedule(tmp_path / str(seed), seed)
