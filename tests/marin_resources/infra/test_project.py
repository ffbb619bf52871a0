"""What a project of Google Cloud shall have: rendered, read rule by rule, and brought about in an empty project."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_google.adapter import InProcess, session
from fake_google.server import FakeGoogle
from fake_google.world import World

from marin_resources.clusters.catalogue import default_path, read_catalogue
from marin_resources.clusters.cluster import CatalogueError, Cluster
from marin_resources.infra.google import Google, GoogleError
from marin_resources.infra.project.apply import Change, changes
from marin_resources.infra.project.desired_state import WantedProject, wanted_project
from marin_resources.infra.project.network import IAP_RANGE
from marin_resources.infra.project.resource import Resource
from marin_resources.infra.project.rights import RIGHTS, Where, Who

OPERATORS = ("group:operators@example.org",)
BASIC = ("roles/owner", "roles/editor", "roles/viewer")
"""Roles on everything, which Google advises against."""


@pytest.fixture
def clusters() -> list[Cluster]:
    return list(read_catalogue().values())


@pytest.fixture
def wanted(clusters: list[Cluster]) -> WantedProject:
    return wanted_project(clusters, OPERATORS)


@pytest.fixture
def small(clusters: list[Cluster]) -> WantedProject:
    """Of two regions."""
    return wanted_project(clusters[:2], OPERATORS)


@pytest.fixture
def empty(tmp_path: Path) -> FakeGoogle:
    """A project in which nothing is, not even a service."""
    return FakeGoogle(tmp_path, World(enabled=set()))


def of_kind(wanted: WantedProject, kind: str) -> list[Resource]:
    return [resource for resource in wanted.resources if resource.kind == kind]


def changes_in(
    google: FakeGoogle, wanted: WantedProject, after: Callable[[str], None] | None = None
) -> Iterator[Change]:
    return changes(wanted, Google(session(InProcess(google, after=after))), sleep=lambda seconds: None)


def apply_all(google: FakeGoogle, wanted: WantedProject) -> list[Change]:
    done = []
    for change in changes_in(google, wanted):
        done.append(change)
        if change.apply is not None:
            change.apply()
    return done


def test_the_firewall_opens_nothing_to_the_world() -> None:
    """Each rule of the committed file."""
    rendered = json.loads((default_path().parent / "project.json").read_text())
    rules = [each["body"] for each in rendered["resources"] if each["kind"] == "firewall"]
    assert [each["body"] for each in rendered["resources"] if "firewalls" in each["url"]] == rules
    assert len(rules) == 3
    for rule in rules:
        assert rule["direction"] == "INGRESS"
        assert rule["targetTags"], "no rule is for all machines of the network"
        assert bool(rule.get("sourceTags")) != bool(rule.get("sourceRanges"))
        for source in rule.get("sourceRanges", []):
            assert source == IAP_RANGE
            assert ipaddress.IPv4Network(source).num_addresses <= 4096
        ports = [port for each in rule["allowed"] for port in each.get("ports", ["all"])]
        if rule.get("sourceTags") != ["marin-ray"]:
            assert ports in (["22"], ["8265"]), "only the cluster's own machines reach all ports"


def test_no_machine_and_no_object_is_public(wanted: WantedProject) -> None:
    assert {each.body["addressType"] for each in of_kind(wanted, "address")} == {"INTERNAL"}
    for bucket in of_kind(wanted, "bucket"):
        access = bucket.body["iamConfiguration"]
        assert (access["publicAccessPrevention"], access["uniformBucketLevelAccess"]["enabled"]) == ("enforced", True)
    assert {grant.member.partition(":")[0] for grant in wanted.grants} == {"serviceAccount", "group"}


def test_rights_are_on_the_one_thing_and_none_is_on_everything(wanted: WantedProject) -> None:
    assert not {grant.role for grant in wanted.grants} & set(BASIC)
    on_project = {(right.who, right.role) for right in RIGHTS if right.where is Where.PROJECT}
    assert Who.WORKER not in {who for who, _ in on_project}, "a slice runs code of everybody's"
    assert {role for who, role in on_project if who is Who.HEAD} == {"roles/compute.instanceAdmin.v1"}
    for right in RIGHTS:
        if "secretmanager" in right.role or "storage" in right.role or "serviceAccountUser" in right.role:
            assert right.where is not Where.PROJECT


def test_only_what_is_temporary_expires(wanted: WantedProject) -> None:
    for bucket in of_kind(wanted, "bucket"):
        for rule in bucket.body["lifecycle"]["rule"]:
            condition = rule["condition"]
            if rule["action"]["type"] == "Delete" and condition.get("isLive") is not False:
                assert condition["matchesPrefix"]
                days = condition["age"]
                assert all(each.endswith(f".marin/temporary/ttl={days}d/") for each in condition["matchesPrefix"])


def test_the_table_of_rights_is_on_the_page() -> None:
    page = (default_path().parent.parent / "docs/how-to/from-an-empty-project.md").read_text()
    for right in RIGHTS:
        assert f"| {right.who} | `{right.role}` | {right.where} | {right.why} |" in page


def test_no_secret_is_in_anything_that_is_rendered(wanted: WantedProject) -> None:
    [secret] = of_kind(wanted, "secret")
    assert secret.body == {"replication": {"automatic": {}}}


def test_an_empty_project_gets_all_of_it_and_then_nothing_is_to_be_done(
    empty: FakeGoogle, small: WantedProject
) -> None:
    done = apply_all(empty, small)
    assert done[0].label.startswith("services cloudresourcemanager.googleapis.com, iam.googleapis.com")
    assert len(done) == 1 + len(small.resources) + 1 + len(small.grants)
    assert apply_all(empty, small) == []
    assert {path for path in empty.world.things if "/firewalls/" in path} == {
        f"projects/marin-example/global/firewalls/marin-{name}" for name in ("cluster", "ssh-by-iap", "dashboard")
    }
    token = empty.world.secrets["RAY_AUTH_TOKEN"]
    assert len(token) == 64
    bound = {(b["role"], member) for b in empty.world.policy["bindings"] for member in b["members"]}
    assert ("roles/tpu.admin", "group:operators@example.org") in bound


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("every", [*(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3)), 7])
def test_it_goes_on_wherever_it_was_killed(empty: FakeGoogle, small: WantedProject, every: int) -> None:
    """Killed after each so many requests that changed something, before their answers came."""
    changed = 0

    def after(request: str) -> None:
        nonlocal changed
        if not request.startswith("GET ") and ":getIamPolicy" not in request:
            changed += 1
            if changed % every == 0:
                raise Killed

    kills = 0
    while True:
        try:
            for change in changes_in(empty, small, after):
                assert change.apply is not None
                change.apply()
            break
        except Killed:
            kills += 1
    assert kills >= 40 // every
    accounts = of_kind(small, "service account")
    assert len(empty.world.things) == len(small.resources) - len(accounts)
    assert empty.world.calls.count("secretmanager.projects.secrets.addVersion") == 1
    assert apply_all(empty, small) == []


def test_what_is_there_and_differs_is_reported_and_left(empty: FakeGoogle, small: WantedProject) -> None:
    apply_all(empty, small)
    rule = empty.world.things["projects/marin-example/global/firewalls/marin-ssh-by-iap"]
    rule["sourceRanges"] = ["0.0.0.0/0"]
    [found] = apply_all(empty, small)
    assert found.apply is None
    assert found.label == "firewall marin-ssh-by-iap"
    assert found.why == "sourceRanges[0] is '0.0.0.0/0', expected '35.235.240.0/20'"
    assert rule["sourceRanges"] == ["0.0.0.0/0"]


def test_a_policy_that_somebody_else_changes_meanwhile_keeps_both(empty: FakeGoogle, small: WantedProject) -> None:
    mine = "user:somebody@example.org"

    def somebody_else() -> None:
        bindings = [*empty.world.policy.get("bindings", []), {"role": "roles/owner", "members": [mine]}]
        empty.world.policy = {**empty.world.policy, "bindings": bindings, "etag": "other"}

    empty.world.faults.append(("cloudresourcemanager.projects.setIamPolicy", somebody_else))
    apply_all(empty, small)
    assert {"role": "roles/owner", "members": [mine]} in empty.world.policy["bindings"]
    assert apply_all(empty, small) == []


def test_without_rights_it_is_a_sentence(empty: FakeGoogle, small: WantedProject) -> None:
    from fake_google.refusals import RefusalError

    def refuse() -> None:
        raise RefusalError(403, "The caller does not have permission")

    empty.world.faults.append(("compute.networks.insert", refuse))
    with pytest.raises(GoogleError, match=r"networks: The caller does not have permission \(HTTP 403\)\."):
        apply_all(empty, small)


def test_clusters_of_two_projects_or_with_overlapping_networks_are_refused(clusters: list[Cluster]) -> None:
    with pytest.raises(CatalogueError, match=r"Make a catalogue for each project\."):
        wanted_project([clusters[0], replace(clusters[1], project="another-one")])
    with pytest.raises(CatalogueError, match=r"Heads of one region are in one range of /16"):
        wanted_project([clusters[0], replace(clusters[1], head_ip="10.10.3.4")])
