"""deploy/compose: valid by the schema of the Compose specification, closed, and of the same commands as deploy/vm.

No docker daemon was tried. What a container would give is looked at by itself: PID namespaces, the proxy's Apache, the
file with the password of Postgres.
"""

from __future__ import annotations

import copy
import importlib.resources
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from container_apache import SECRETS, ContainerApache, container_apache, container_ports
from postgres_server import USER, postgres
from running import ROOT
from unit_commands import unit_command, without_address

from marin_resources.doctor.variables import unread
from marin_resources.host.process import this_process
from marin_resources.ray_tpu.cluster.local.head import free_ports

FOLDER = ROOT / "deploy/compose"
OF_MARIN = {
    "code": "code",
    "daemon": "daemon",
    "webserver": "webserver",
    "readonly": "readonly",
    "browse": "browse",
    "metrics": "metrics",
}
"""Service -> the unit of deploy/vm/systemd that has its command."""
REACHES = {
    ("proxy", "webserver"),
    ("proxy", "readonly"),
    ("proxy", "browse"),
    *((service, "postgres") for service in OF_MARIN if service != "browse"),
}
"""Who has a network with whom. Services of Marin among themselves are left out, as they are of one user; but the data
browser, which shows texts of strangers, has none with any of them."""


def interpolated(text: str, variables: Mapping[str, str]) -> str:
    """As Compose does it: ${NAME}, ${NAME:-default}, ${NAME:?what is missing}."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match["name"], match["kind"], match["rest"]
        if variables.get(name):
            return variables[name]
        assert kind == ":-", f"{name} is not in example.env"
        return rest

    return re.sub(r"\$\{(?P<name>\w+)(?P<kind>:[-?])?(?P<rest>[^}]*)\}", value, text)


def example() -> dict[str, str]:
    lines = (FOLDER / "example.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


COMPOSE: dict[str, Any] = yaml.safe_load(interpolated((FOLDER / "compose.yaml").read_text(), example()))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def validate(compose: object) -> None:
    """Raises ValidationError."""
    vendored = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    schema = json.loads(vendored.read_text())
    jsonschema.validators.validator_for(schema)(schema).validate(compose)


def networks(service: str) -> set[str]:
    return set(SERVICES[service].get("networks", []))


def secrets_of(service: Mapping[str, Any]) -> set[str]:
    return {one if isinstance(one, str) else one["source"] for one in service.get("secrets", [])}


def test_it_is_valid() -> None:
    validate(COMPOSE)


@pytest.mark.parametrize(
    ("service", "field", "value"),
    [("code", "readonly", True), ("proxy", "depends_on", {"webserver": {"condition": "healthy"}}), ("code", "user", 1)],
)
def test_a_mistake_is_refused(service: str, field: str, value: object) -> None:
    wrong = copy.deepcopy(COMPOSE)
    wrong["services"][service][field] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(wrong)


def test_every_variable_is_in_the_example_and_every_example_is_used() -> None:
    named = set(re.findall(r"\$\{(\w+)", (FOLDER / "compose.yaml").read_text()))
    assert named == set(example())


@pytest.mark.parametrize("service", OF_MARIN)
def test_a_service_has_the_command_of_its_unit(service: str) -> None:
    assert without_address(SERVICES[service]["command"]) == without_address(unit_command(OF_MARIN[service]))


@pytest.mark.parametrize("service", OF_MARIN)
def test_a_service_has_no_variable_that_nothing_reads(service: str) -> None:
    assert list(unread(SERVICES[service]["environment"])) == []


def test_nothing_but_the_proxy_has_a_port() -> None:
    assert [name for name, service in SERVICES.items() if service.get("ports") or service.get("expose")] == ["proxy"]
    assert {service.get("network_mode") for service in SERVICES.values()} == {None, "none"}


def test_who_reaches_whom() -> None:
    def shared(a: str, b: str) -> bool:
        return a != b and bool(networks(a) & networks(b))

    both_ways = REACHES | {(b, a) for a, b in REACHES}
    others = {"processes", "proxy", "postgres", "browse"}
    found = {(a, b) for a in SERVICES for b in SERVICES if shared(a, b) and {a, b} & others}
    assert found == both_ways
    internal = {name for name, network in COMPOSE["networks"].items() if network.get("internal")}
    assert networks("postgres") == {"back"} <= internal
    assert "front" in internal


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_closed(service: str) -> None:
    its = SERVICES[service]
    user, group = its["user"].split(":")
    assert int(user) > 0
    assert int(group) > 0
    assert its["cap_drop"] == ["ALL"]
    assert its["security_opt"] == ["no-new-privileges:true"]
    assert its["read_only"] is True
    assert not its.keys() & {"privileged", "cap_add", "devices", "ipc", "userns_mode", "cgroup_parent"}
    assert "docker.sock" not in json.dumps(its)
    assert its["restart"] == "unless-stopped"
    assert its["mem_limit"]
    assert set(its["logging"]["options"]) == {"max-size", "max-file"}
    assert its.get("healthcheck") or service == "processes"


def test_services_wait_for_what_they_need() -> None:
    for service in SERVICES.values():
        for needed, how in service.get("depends_on", {}).items():
            healthy = "healthcheck" in SERVICES[needed]
            assert how["condition"] == ("service_healthy" if healthy else "service_started")


def test_the_image_of_postgres_has_a_major_version() -> None:
    assert re.fullmatch(r"docker\.io/library/postgres:\d+-\w+", SERVICES["postgres"]["image"])


def test_no_file_holds_a_secret_and_each_secret_reaches_who_needs_it() -> None:
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())
    assert {name: secrets_of(service) for name, service in SERVICES.items()} == {
        "processes": set(),
        "code": {"pgpass", "ray_token"},
        **{name: {"pgpass"} for name in ("daemon", "webserver", "readonly", "metrics")},
        "browse": set(),
        "postgres": {"postgres_password"},
        "proxy": {"proxy.conf", "tls.crt", "tls.key"},
    }
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"(PASSWORD|TOKEN|SECRET|KEY)$", variable), f"{name} has {variable}"
            assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), f"{name} has a password in {variable}"
    ignored = ["git", "check-ignore", "deploy/compose/secrets/pgpass", "deploy/compose/.env"]
    assert len(subprocess.run(ignored, cwd=ROOT, capture_output=True, text=True).stdout.split()) == 2
    sent = (FOLDER / "proxy/Dockerfile.dockerignore").read_text().splitlines()
    assert sent[1] == "*"
    copied = re.findall(r"^COPY (\S+)", (FOLDER / "proxy/Dockerfile").read_text(), re.M)
    assert sent[2:] == [f"!{path}" for path in copied]
    assert all((ROOT / "deploy" / path).is_file() for path in copied)


def test_every_file_that_it_names_is_here() -> None:
    assert (FOLDER / COMPOSE["configs"]["dagster.yaml"]["file"]).resolve() == ROOT / "deploy/vm/dagster.yaml"
    build = SERVICES["proxy"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == FOLDER / "proxy/Dockerfile"


def test_users_are_those_of_the_images_and_own_what_they_write() -> None:
    user_of = {name: service["user"] for name, service in SERVICES.items()}
    assert "useradd --system --uid 10001" in (ROOT / "deploy/images/Dockerfile").read_text()
    assert "useradd --system --uid 10002" in (FOLDER / "proxy/Dockerfile").read_text()
    assert {user_of[name] for name in OF_MARIN} == {"10001:10001"}
    assert user_of["proxy"] == "10002:10002"
    assert "uid=10001,gid=10001,mode=0700" in COMPOSE["volumes"]["socket"]["driver_opts"]["o"]


# Processes of runs, in PID namespaces


def test_code_server_and_daemon_number_processes_alike_and_nobody_else_does() -> None:
    def where(service: str) -> tuple[str | None, str | None]:
        return SERVICES[service].get("pid"), SERVICES[service].get("hostname")

    assert where("code") == where("daemon") == ("service:processes", "marin-runs")
    others = SERVICES.keys() - {"code", "daemon"}
    assert {where(service) for service in others} == {(None, None)}
    assert SERVICES["processes"]["init"] is True
    assert "MARIN_IMAGE" not in re.findall(r"  processes:\n(?:    .*\n)+", (FOLDER / "compose.yaml").read_text())[0]


LOOK = (
    "from marin_resources.host.process import *; import sys; print(process_is_gone(sys.argv[1]), pid_here(sys.argv[1]))"
)


def look_from(namespace: list[str], process: str) -> str:
    """What `process_is_gone` and `pid_here` say of a process, in a namespace."""
    command = ["nice", "-n", "19", *namespace, sys.executable, "-c", LOOK, process]
    looked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert looked.returncode == 0, looked.stderr
    return looked.stdout.strip()


@pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("unshare") is None
    or subprocess.run(["unshare", "--pid", "--uts", "--fork", "true"], check=False).returncode != 0,
    reason="making namespaces needs root, and a machine that allows them",
)
def test_without_a_common_namespace_a_run_that_lives_would_look_dead() -> None:
    run = this_process()
    host, pid, started = run.split("/")
    fork = ["unshare", "--pid", "--uts", "--fork", "--mount-proc"]
    renamed = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]
    assert look_from([], run) == f"False {pid}"  # daemon and code server as they are: it lives, and can be interrupted
    assert look_from([], f"{host}/{pid}/{float(started) - 1:.2f}") == "True None"  # a dead one is seen
    assert look_from(fork, run) == "True None"  # the name alone: all runs would be marked as failed
    assert look_from(renamed, run) == "False None"  # the namespace alone: no run ever would


# The proxy


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[ContainerApache]:
    """The container's Apache; the webservers are away."""
    apache = container_ports(tmp_path)
    webserver, read_only, browser = free_ports(3)
    names = {
        **SERVICES["proxy"]["environment"],
        "MARIN_SESSIONS": str(tmp_path / "run"),
        "MARIN_WEBSERVER": f"127.0.0.1:{webserver}",
        "MARIN_READ_ONLY": f"127.0.0.1:{read_only}",
        "MARIN_BROWSER": f"127.0.0.1:{browser}",
        "MARIN_PROVIDER": f"http://127.0.0.1:{webserver}",
    }
    with container_apache(apache, SERVICES["proxy"]["command"], names):
        yield apache
        lines = (tmp_path / "access").read_text().splitlines()
        assert [json.loads(line)["user"] for line in lines] == ["-"] * len(lines), "nobody logs in here"
        assert lines


def test_the_proxy_does_not_start_without_a_place_for_sessions(tmp_path: Path) -> None:
    apache = container_ports(tmp_path)
    command = [word for word in SERVICES["proxy"]["command"] if word != "MARIN_SESSIONS"][:-1]
    with (
        pytest.raises(AssertionError, match="define MARIN_SESSIONS, a folder, or MARIN_SESSIONS_SERVER, host:port"),
        container_apache(apache, command, SERVICES["proxy"]["environment"]),
    ):
        pass


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def status(url: str, host: str = "") -> tuple[int, Any]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _Stay())
    try:
        answer = opener.open(urllib.request.Request(url, headers={"Host": host} if host else {}), timeout=10)
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers
    return answer.status, answer.headers


def test_the_proxy_starts_with_its_configuration_and_refuses_who_has_no_login(apache: ContainerApache) -> None:
    url = apache.url
    assert status(f"{url}/health")[0] == 503  # the webserver is away
    code, headers = status(f"{url}/graphql/../runs")
    assert code in (401, 403)
    assert headers["Strict-Transport-Security"] == "max-age=31536000"
    moved, headers = status(f"http://127.0.0.1:{apache.plain}/runs")
    assert (moved, headers["Location"]) == (301, f"{example()['MARIN_UI_URL']}/runs")


def test_the_data_browser_has_a_name_of_its_own_at_the_proxy(apache: ContainerApache) -> None:
    name = example()["MARIN_BROWSE_URL"].removeprefix("https://")
    assert status(f"{apache.url}/health", name)[0] == 503  # it is away
    assert status(f"{apache.url}/", name)[0] in (401, 500)  # and so is the provider
    _, headers = status(f"{apache.url}/rows", name)
    assert headers["Strict-Transport-Security"] == "max-age=31536000"
    moved, headers = status(f"http://127.0.0.1:{apache.plain}/rows", name)
    assert (moved, headers["Location"]) == (301, f"https://{name}/rows")


LOGIN = "    Include /etc/marin/login.conf\n"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"secrets_text": SECRETS.partition("Define")[0]}, "The data browser needs a passphrase"),
        ({"edit": lambda text: text.replace(LOGIN, "", 1)}, "Include login.conf, of the same folder, before this file"),
        ({"edit": lambda text: "".join(text.rsplit(LOGIN, 1))}, "Include login.conf, of the same folder, before this"),
    ],
    ids=["passphrase", "of the first host", "of the second host"],
)
def test_the_proxy_does_not_start_without_a_part_of_the_login(
    tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    names = {**SERVICES["proxy"]["environment"], "MARIN_SESSIONS": str(tmp_path)}
    with (
        pytest.raises(AssertionError, match=sentence),
        container_apache(container_ports(tmp_path), SERVICES["proxy"]["command"], names, **changed),
    ):
        pass


def test_the_data_browser_alone_of_marins_services_holds_no_state_and_no_secret() -> None:
    held = {
        name: [*service.get("volumes", []), *service["configs"], *secrets_of(service)]
        for name, service in SERVICES.items()
        if name in OF_MARIN
    }
    assert [name for name, things in held.items() if not things] == ["browse"]
    assert not [name for name in SERVICES["browse"]["environment"] if "POSTGRES" in name or "CLUSTER" in name]


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("the group `rehearsal` is not installed: make rehearsal")
    found = subprocess.run([hadolint, FOLDER / "proxy/Dockerfile"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_mistake_in_the_unit(tmp_path: Path) -> None:
    place = shutil.copy(FOLDER / "marin-compose.service", tmp_path)
    (tmp_path / "docker.service").write_text("[Service]\nExecStart=/bin/true\n")
    env = {"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"}
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", place], env=env, capture_output=True, text=True)
    assert [line for line in verified.stderr.splitlines() if "is not executable" not in line] == []


# Postgres


def test_a_password_in_a_file_of_its_own_opens_postgres_and_one_that_others_may_read_does_not(tmp_path: Path) -> None:
    """The URL of compose.yaml has no password; libpq takes it from PGPASSFILE."""
    with postgres() as server:
        url = server.create("marin")
        password, address = re.findall(rf"{USER}:(.*)@([\d.:]+)/", url)[0]
        passfile = tmp_path / "pgpass"
        passfile.write_text(f"127.0.0.1:{address.rpartition(':')[2]}:marin:{USER}:{password}\n")
        connect = f"import psycopg2; psycopg2.connect('postgresql://{USER}@{address}/marin').close()"

        def opens(mode: int) -> bool:
            passfile.chmod(mode)
            env = {**os.environ, "PGPASSFILE": str(passfile)}
            return subprocess.run([sys.executable, "-c", connect], env=env, capture_output=True).returncode == 0

        assert opens(0o400)
        assert not opens(0o444)
