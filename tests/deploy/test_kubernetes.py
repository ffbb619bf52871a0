"""The manifests of deploy/kubernetes: valid, closed, reachable by a stated table, and of the commands of deploy/vm.

No Kubernetes was tried.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_files import (
    CODE,
    DAEMON,
    DAGSTER_YAML,
    FOLDER,
    IMAGE,
    KUSTOMIZATION,
    MANIFESTS,
    VALUES,
    VERSIONS,
    WORKLOADS,
    chart_pod,
    closed,
    container_of,
    job_of,
    launcher_of_runs,
    pod_of,
)
from running import ROOT
from unit_commands import unit_command, without_address

from marin_resources.doctor.variables import unread


@pytest.fixture(scope="module")
def run() -> Iterator[dict[str, Any]]:
    """The job of a run."""
    with launcher_of_runs() as launcher:
        yield job_of(launcher)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_are_valid(version: str) -> None:
    for manifest in MANIFESTS:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", sorted({*WORKLOADS, "marin", "marin-readonly"}))
def test_a_mistake_in_a_manifest_is_refused(name: str) -> None:
    for manifest in MANIFESTS:
        if manifest["metadata"]["name"] == name:
            with pytest.raises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate({**copy.deepcopy(manifest), "specs": {}}, VERSIONS[-1], strict=True)


def test_the_daemon_has_our_dagster_yaml_and_not_the_one_of_the_chart() -> None:
    """The chart mounts its own at `dagsterHome`, whatever its values say."""
    [home] = [one["value"] for one in DAEMON["env"] if one["name"] == "DAGSTER_HOME"]
    [ours] = [one["name"] for one in DAEMON["volumes"] if one.get("configMap") == {"name": "marin-dagster-yaml"}]
    assert home != VALUES["global"]["dagsterHome"]
    assert {"name": ours, "mountPath": f"{home}/dagster.yaml", "subPath": "dagster.yaml"} in DAEMON["volumeMounts"]


def test_kustomize_is_given_every_file_and_makes_every_config_map() -> None:
    made = {one["name"]: [*one.get("files", []), *one.get("envs", [])] for one in KUSTOMIZATION["configMapGenerator"]}
    here = {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml", "values.yaml"}
    assert {*KUSTOMIZATION["resources"], *(file for files in made.values() for file in files)} == here
    text = json.dumps([MANIFESTS, VALUES, DAGSTER_YAML])
    named = set(re.findall(r'"configMap(?:Ref)?": \{"name": "([\w-]+)"', text)) | {
        VALUES["dagsterWebserver"]["workspace"]["externalConfigmap"],
        DAGSTER_YAML["run_launcher"]["config"]["instance_config_map"],
        *DAGSTER_YAML["run_launcher"]["config"]["env_config_maps"],
        *(one["name"] for one in [*CODE["envConfigMaps"], *DAEMON["envConfigMaps"]]),
    }
    assert named == set(made)
    assert KUSTOMIZATION["generatorOptions"]["disableNameSuffixHash"] is True


def test_every_pod_is_closed() -> None:
    assert {name: closed(pod_of(workload)) for name, workload in WORKLOADS.items()} == {name: [] for name in WORKLOADS}
    assert closed(chart_pod(DAEMON)) == closed(chart_pod(CODE)) == []
    [namespace] = [one for one in MANIFESTS if one["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    opened = copy.deepcopy(pod_of(WORKLOADS["marin-proxy"]))
    opened["containers"][0]["securityContext"]["privileged"] = True
    opened["securityContext"]["runAsNonRoot"] = False
    assert closed(opened) == ["may be root", "rights"]


def test_every_container_has_probes_and_says_what_it_needs() -> None:
    for name, workload in WORKLOADS.items():
        [container] = pod_of(workload)["containers"]
        assert "memory" in container["resources"]["requests"], name
        assert "readinessProbe" in container, name
        assert "livenessProbe" in container or name == "marin-postgres", name
    assert "livenessProbe" in DAEMON
    assert {"readinessProbe", "livenessProbe"} <= CODE.keys()


def test_a_disruption_leaves_one_of_those_that_are_two() -> None:
    two = {name for name, workload in WORKLOADS.items() if workload["spec"]["replicas"] > 1}
    budgets = [one for one in MANIFESTS if one["kind"] == "PodDisruptionBudget"]
    assert {one["spec"]["selector"]["matchLabels"]["component"] for one in budgets} == two
    assert {one["spec"]["minAvailable"] for one in budgets} == {1}


def test_accounts_have_the_rights_of_their_pods_alone(run: dict[str, Any]) -> None:
    accounts = {one["metadata"]["name"] for one in MANIFESTS if one["kind"] == "ServiceAccount"}
    account_of = {name: pod_of(workload)["serviceAccountName"] for name, workload in WORKLOADS.items()}
    subchart = VALUES["dagster-user-deployments"]
    account_of |= {
        "daemon": VALUES["serviceAccount"]["name"],
        "code": subchart["serviceAccount"]["name"],
        "run": pod_of(run)["serviceAccountName"],
    }
    assert account_of == {
        "daemon": "marin-orchestrator",
        "marin-webserver": "marin-orchestrator",
        "code": "marin-code",
        "run": "marin-code",
        "marin-readonly": "marin-reader",
        "marin-browse": "marin-reader",
        "marin-metrics": "marin-reader",
        "marin-proxy": "marin-alone",
        "marin-postgres": "marin-alone",
        "marin-sessions": "marin-alone",
    }
    assert set(account_of.values()) == accounts
    assert VALUES["global"]["serviceAccountName"] == ""  # it would be the account of all
    assert (VALUES["rbacEnabled"], subchart["rbacEnabled"]) == (True, False)
    assert [
        one for one in MANIFESTS if one["kind"] in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    ] == []


def test_no_file_holds_a_secret_and_each_is_named_on_the_page() -> None:
    assert [one for one in MANIFESTS if one["kind"] == "Secret"] == []
    for path in FOLDER.iterdir():
        text = path.read_text()
        assert not re.search(r"(?i)\b(password|secret|token|key)\w*: *['\"]?[A-Za-z0-9+/=]{12,}['\"]?$", text, re.M), (
            path
        )
        assert "://" not in re.sub(r"\w+://[\w.-]+(:\d+)?(/[\w/-]*)?", "", text), path
    text = json.dumps([MANIFESTS, CODE, DAGSTER_YAML])
    named = set(re.findall(r'"secretName": "([\w-]+)"', text))
    named |= set(re.findall(r'"secretKeyRef": \{"name": "([\w-]+)"', text)) | {VALUES["global"]["postgresqlSecretName"]}
    page = (ROOT / "docs/how-to/deploy-on-kubernetes.md").read_text()
    created = set(re.findall(r"create secret \w+ ([\w-]+)", page))
    assert named == created == {"marin-postgres", "marin-ray-token", "marin-proxy", "marin-tls"}
    assert VALUES["generatePostgresqlPasswordSecret"] is False


# Who reaches whom


POLICIES = [one for one in MANIFESTS if one["kind"] == "NetworkPolicy"]
HERE = "marin"
OUTSIDE = {
    "Prometheus": ("monitoring", {"app": "prometheus"}),
    "a pod of another namespace": ("default", {"component": "marin-proxy"}),
    "another pod of this namespace": (HERE, {"component": "other"}),
}
REACHES = {
    *((source, "proxy", port) for source in ("Prometheus", "a pod of another namespace") for port in (8080, 8443)),
    ("proxy", "webserver", 3000),
    ("proxy", "readonly", 3001),
    ("proxy", "browse", 3002),
    ("proxy", "sessions", 6379),
    *((source, "code", 4000) for source in ("webserver", "readonly", "daemon")),
    *((source, "postgres", 5432) for source in ("webserver", "readonly", "metrics", "daemon", "code", "run")),
    ("Prometheus", "metrics", 9464),
}
"""Source, target, port: the whole table. A pod of this namespace that is not Marin's asks nobody."""


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    for rule in selector.get("matchExpressions", []):
        assert rule["operator"] == "In"
        if labels.get(rule["key"]) not in rule["values"]:
            return False
    return selector.get("matchLabels", {}).items() <= labels.items()


def names_it(peer: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> bool:
    if "ipBlock" in peer:
        return True  # of pods too: what a plugin takes an address for is its own affair
    assert peer.keys() <= {"podSelector", "namespaceSelector"}
    there = peer.get("namespaceSelector")
    same = selects(there, {"kubernetes.io/metadata.name": namespace}) if there is not None else namespace == HERE
    return same and selects(peer.get("podSelector", {}), labels)


def allows(way: str, mine: Mapping[str, str], namespace: str, labels: Mapping[str, str], port: int) -> bool:
    """Whether the policies let a pod of this namespace with the labels `mine` talk with the other, in a direction."""
    its = [one["spec"] for one in POLICIES if selects(one["spec"]["podSelector"], mine)]
    its = [spec for spec in its if way in spec["policyTypes"]]
    if not its:
        return True
    rules = [rule for spec in its for rule in spec.get(way.lower(), [])]
    end = "from" if way == "Ingress" else "to"
    return any(
        ("ports" not in rule or port in [one["port"] for one in rule["ports"] if one.get("protocol") != "UDP"])
        and (end not in rule or any(names_it(peer, namespace, labels) for peer in rule[end]))
        for rule in rules
    )


def pods(run: dict[str, Any]) -> dict[str, tuple[str, dict[str, str], list[int]]]:
    """Pod -> namespace, labels, ports."""
    found = {
        name.removeprefix("marin-"): (
            HERE,
            workload["spec"]["template"]["metadata"]["labels"],
            [port["containerPort"] for port in pod_of(workload)["containers"][0]["ports"]],
        )
        for name, workload in WORKLOADS.items()
    }
    of_chart = {"app.kubernetes.io/instance": "marin"}  # by its templates
    found["daemon"] = (HERE, {**of_chart, "component": "dagster-daemon", "deployment": "daemon"}, [])
    found["code"] = (HERE, {**of_chart, "component": "user-deployments", "deployment": CODE["name"]}, [CODE["port"]])
    found["run"] = (HERE, run["spec"]["template"]["metadata"]["labels"], [])
    return found | {name: (namespace, labels, []) for name, (namespace, labels) in OUTSIDE.items()}


def reached(run: Mapping[str, Any], ends: Sequence[str]) -> set[tuple[str, str, int]]:
    """Who reaches whom, if the policies held at these ends of a connection alone."""
    found = set()
    all_of_them = pods(run)
    for source, (from_namespace, from_labels, _) in all_of_them.items():
        for target, (to_namespace, to_labels, ports) in all_of_them.items():
            for port in ports:
                out = from_namespace != HERE or allows("Egress", from_labels, to_namespace, to_labels, port)
                into = allows("Ingress", to_labels, from_namespace, from_labels, port)
                if source != target and (out or "Egress" not in ends) and into:
                    found.add((source, target, port))
    return found


def test_who_reaches_whom(run: dict[str, Any]) -> None:
    assert reached(run, ["Egress", "Ingress"]) == REACHES


def test_who_is_asked_refuses_by_itself(run: dict[str, Any]) -> None:
    """Also where a plugin does not hold pods back from asking. The proxy alone answers everybody."""
    assert {one for one in reached(run, ["Ingress"]) if one[1] != "proxy"} == {
        one for one in REACHES if one[1] != "proxy"
    }


def test_nothing_is_allowed_to_a_pod_that_no_rule_names() -> None:
    [nothing] = [one["spec"] for one in POLICIES if one["metadata"]["name"] == "nothing"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_a_service_leads_to_pods_and_one_of_them_alone_is_outside() -> None:
    services = [one for one in MANIFESTS if one["kind"] == "Service"]
    for service in services:
        workload = WORKLOADS[service["metadata"]["name"]]
        assert selects({"matchLabels": service["spec"]["selector"]}, workload["spec"]["template"]["metadata"]["labels"])
        ports = {port["name"]: port["containerPort"] for port in container_of(service["metadata"]["name"])["ports"]}
        for port in service["spec"]["ports"]:
            assert ports[port.get("targetPort", port["name"])]
    assert [one["metadata"]["name"] for one in services if one["spec"].get("type")] == ["marin-proxy"]
    assert VALUES["ingress"]["enabled"] is False
    named = dict(line.split("=") for line in (FOLDER / "proxy.env").read_text().splitlines() if line[0] != "#")
    addresses = {f"{one['metadata']['name']}:{one['spec']['ports'][0]['port']}" for one in services}
    behind = ("MARIN_WEBSERVER", "MARIN_READ_ONLY", "MARIN_BROWSER", "MARIN_SESSIONS_SERVER")
    assert {named[name] for name in behind} <= addresses
    settings = dict(line.split("=") for line in (FOLDER / "settings.env").read_text().splitlines() if line[0] != "#")
    assert settings["MARIN_BROWSE_URL"] == named["MARIN_BROWSE_URL"] != named["MARIN_URL"] == settings["MARIN_UI_URL"]


def test_both_proxies_have_their_sessions_in_one_server() -> None:
    """A second server, for a moment too, would have sessions that the first does not have."""
    assert container_of("marin-proxy")["command"][-2:] == ["-D", "MARIN_SESSIONS_SERVER"]
    sessions = WORKLOADS["marin-sessions"]["spec"]
    assert (sessions["replicas"], sessions["strategy"]) == (1, {"type": "Recreate"})
    assert "volumeClaimTemplates" not in sessions, "a restart ends all sessions"


# As on one machine


@pytest.mark.parametrize(
    ("workload", "unit"),
    [
        ("marin-webserver", "webserver"),
        ("marin-readonly", "readonly"),
        ("marin-browse", "browse"),
        ("marin-metrics", "metrics"),
    ],
)
def test_a_pod_has_the_command_of_its_unit(workload: str, unit: str) -> None:
    assert without_address(container_of(workload)["command"]) == without_address(unit_command(unit))
    assert container_of(workload)["image"] == IMAGE


def test_the_code_location_has_the_command_of_its_unit() -> None:
    by_the_chart = ["dagster", "api", "grpc", "-h", "0.0.0.0", "-p", str(CODE["port"])]
    assert without_address([*by_the_chart, *CODE["dagsterApiGrpcArgs"]]) == without_address(unit_command("code"))
    [location] = [one["grpc_server"] for one in yaml.safe_load((FOLDER / "workspace.yaml").read_text())["load_from"]]
    arguments = CODE["dagsterApiGrpcArgs"]
    name = arguments[arguments.index("--location-name") + 1]
    assert location == {"host": CODE["name"], "port": CODE["port"], "location_name": name}
    [of_one_machine] = yaml.safe_load((ROOT / "deploy/vm/workspace.yaml").read_text())["load_from"]
    assert of_one_machine["grpc_server"]["location_name"] == name
    # The chart's daemon prints its log as text, not as JSON.
    assert without_address(unit_command("daemon")) == without_address(["dagster-daemon", "run", "--log-format", "json"])


def test_images_are_one_build_and_postgres_is_that_of_compose() -> None:
    compose = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"]
    of_postgres = VALUES["postgresql"]["image"]
    postgres = "{registry}/{repository}:{tag}".format(**of_postgres)
    assert container_of("marin-postgres")["image"] == postgres == compose["postgres"]["image"]
    assert pod_of(WORKLOADS["marin-postgres"])["securityContext"]["runAsUser"] == int(
        compose["postgres"]["user"].split(":")[0]
    )
    assert container_of("marin-proxy")["image"].endswith("/" + compose["proxy"]["image"])
    assert container_of("marin-sessions")["image"] == container_of("marin-proxy")["image"]
    assert container_of("marin-proxy")["command"][:-1] == compose["proxy"]["command"][:-1]
    assert CODE["image"] == DAEMON["image"]


def test_settings_are_ones_that_something_reads() -> None:
    lines = (FOLDER / "settings.env").read_text().splitlines()
    environ = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    environ |= {one["name"]: one["value"] for one in CODE["env"]}
    assert list(unread(environ)) == []
    launcher = DAGSTER_YAML["run_launcher"]["config"]
    of_runs = [f"DAGSTER_HOME={launcher['dagster_home']}", *launcher["env_vars"]]
    assert [f"{one['name']}={one['value']}" for one in CODE["env"]] == of_runs
    conf = "".join((ROOT / f"deploy/proxy/{name}.conf").read_text() for name in ("login", "marin", "browse"))
    proxy = [line.split("=")[0] for line in (FOLDER / "proxy.env").read_text().splitlines() if line[0] != "#"]
    elsewhere = {"MARIN_SESSIONS", "MARIN_BROWSE_PASSPHRASE"}  # a folder, which two proxies do not share; a secret
    assert set(proxy) == set(re.findall(r"\$\{(MARIN_\w+)\}", conf)) - elsewhere


def test_git_has_no_file_of_a_deployment() -> None:
    listed = subprocess.run(["git", "ls-files", "deploy/kubernetes"], cwd=ROOT, capture_output=True, text=True).stdout
    assert not re.search(r"secret|\.key$|\.pem$|kubeconfig", listed)
