"""The proxy with the login, before the whole deployment on loopback: who gets in, who may do what, and what is refused.

Each attack is made twice: at the service that the proxy hides, which obeys, and at the proxy.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

import dagster as dg
import psutil
import pytest
from dagster_dev import LAUNCH
from listening import listening
from person import PARTITIONS, TERMINATE, Person, launch_of, said
from rehearsal import Rehearsal, rehearsal
from running import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WHO = "{ version }"
LOOKS = "{ permissions { permission value } }"
WIPE = """mutation($path: [String!]!) { wipeAssets(assetPartitionRanges: [{assetKey: {path: $path}}]) {
  __typename ... on UnauthorizedError { message } } }"""
SEEN = "mutation { setNuxSeen }"
LOGGED_IN = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def deployment() -> Iterator[Rehearsal]:
    with rehearsal() as deployment:
        yield deployment


@pytest.fixture(scope="module")
def ada(deployment: Rehearsal) -> Person:
    """Of the operators."""
    return deployment.person("ada")


@pytest.fixture(scope="module")
def bob(deployment: Rehearsal) -> Person:
    """Of the readers."""
    return deployment.person("bob")


def test_without_a_login_nothing_answers_but_the_health_check(deployment: Rehearsal) -> None:
    bare, nobody = deployment.beside_the_proxy(), deployment.person()
    assert bare.ask(WHO)["version"]
    for path in ("/", "/graphql", "/server_info", "/runs", "/favicon.ico", "/download_debug/x", "/health/", "/healthy"):
        answer = nobody.get(path, **LOGGED_IN)
        assert answer.status_code in (401, 403), said(answer)
        assert "dagster" not in answer.text.lower()
    assert nobody.post("/graphql", {"query": WHO}).status_code == 401
    assert nobody.post("/report_asset_materialization/hello", {}).status_code == 401
    answer = nobody.get("/", Accept="text/html")
    assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (
        302,
        deployment.layout.provider_url + "/auth",
    )
    health = nobody.get("/health")
    assert (health.status_code, health.text) == (200, "ok")
    assert not {"X-Dagster-Call-Counts"} & set(health.headers)


def test_the_health_check_fails_while_the_webserver_is_away(deployment: Rehearsal) -> None:
    deployment.supervisor("stop", "read_only")
    try:
        assert deployment.person().get("/health").status_code == 503
    finally:
        deployment.supervisor("start", "read_only")
        deployment.await_all()


@pytest.mark.parametrize(
    "path",
    [
        "//graphql",
        "/./graphql",
        "/%2e/graphql",
        "/%67raphql",
        "/graphql/",
        "/health/../graphql",
        "/health/%2e%2e/graphql",
        "/health%2f..%2fgraphql",
        "/health/..%2fgraphql",
        "/health;/../graphql",
        "/oidc/callback/../../graphql",
        "/oidc/callback/%2e%2e/%2e%2e/graphql",
        "/oidc/callback",
        "/HEALTH",
        "/health?x=/graphql",
        "http://127.0.0.1/graphql",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_path_leads_past_the_login(deployment: Rehearsal, method: str, path: str) -> None:
    status, text = raw(deployment.layout.port, method, path, json.dumps({"query": WHO}))
    if (status, text) == (200, "ok") or path == "/oidc/callback":  # of the health check, and of the login itself
        assert '"version"' not in text
    else:
        assert status in (302, 400, 401, 403, 404, 405), (status, text)


def test_somebody_of_no_group_gets_nothing(deployment: Rehearsal) -> None:
    eve = deployment.person("eve")
    for path in ("/", "/server_info"):
        assert eve.get(path, **LOGGED_IN).status_code == 403
    assert eve.post("/graphql", {"query": WHO}).status_code == 403


def test_readers_see_all_and_change_nothing(deployment: Rehearsal, ada: Person, bob: Person) -> None:
    assert bob.ask(WHO)["version"]
    assert bob.get("/runs", Accept="text/html").status_code == 200
    assert bob.launch("two_steps")["__typename"] == "UnauthorizedError"
    assert bob.backfill("two_steps/data")["__typename"] in ("UnauthorizedError", "PythonError")
    run_id = ada.launch("two_steps")["run"]["runId"]
    assert "permission" in bob.ask(TERMINATE, id=run_id)["terminateRun"]["message"]
    wiped = bob.ask(WIPE, path=["two_steps", "data"])["wipeAssets"]
    assert wiped["__typename"] == "UnauthorizedError"
    assert bob.ask(PARTITIONS, name="drops", key="x")["addDynamicPartition"]["__typename"] == "UnauthorizedError"
    assert bob.post("/report_asset_materialization/two_steps/data", {}).status_code in (401, 403)
    assert not any(each["value"] for each in bob.ask(LOOKS)["permissions"])
    may = {each["permission"] for each in ada.ask(LOOKS)["permissions"] if each["value"]}
    assert {"launch_pipeline_execution", "terminate_pipeline_execution", "wipe_assets"} <= may
    wait_until(lambda: bob.run(run_id)[0] == "SUCCESS", "the run that ada launched ends", timeout_s=300)


def test_operators_launch_and_their_name_is_on_the_run(deployment: Rehearsal, ada: Person) -> None:
    forged = {"X-Marin-User": "root", "X_Marin_User": "root", "Remote-User": "root", "OIDC_CLAIM_email": "root"}
    bare = deployment.beside_the_proxy()
    believed = bare.launch("two_steps", headers=forged)["run"]["runId"]
    assert bare.run(believed)[1]["marin/user"] == "root"
    launched = ada.launch("two_steps", tags={"marin/user": "root"}, headers=forged)["run"]["runId"]
    assert ada.run(launched)[1]["marin/user"] == "ada@lab.example"
    backfilled = ada.backfill("two_steps/data", "two_steps/stats")
    assert backfilled["__typename"] == "LaunchBackfillSuccess", backfilled
    with deployment.instance() as instance:
        backfill = instance.get_backfill(backfilled["backfillId"])
        assert backfill is not None
        assert backfill.tags["marin/user"] == "ada@lab.example"
        of_it = dg.RunsFilter(tags={"dagster/backfill": backfilled["backfillId"]})
        runs = wait_until(lambda: instance.get_runs(of_it), "the backfill's run")
        assert {run.tags["marin/user"] for run in runs} == {"ada@lab.example"}


@pytest.mark.parametrize(
    "lines",
    [
        ["close, X-Marin-User"],
        ["x-marin-user"],
        ["X-Marin-User, keep-alive"],
        ["close", "X-MARIN-USER"],
        ["\tclose\t,\tX-Marin-User\t"],
        ["close,,X-Marin-User,"],
        ["close X-Marin-User"],
        ["close; X-Marin-User"],
        ["closeX-Marin-User"],
        ["X-Marin-User;close"],
        ['"X-Marin-User"'],
        ["close, Content-Type"],
        ["close, Cookie"],
        ["upgrade, X-Marin-User"],
        ["close," * 900 + "X-Marin-User"],
    ],
    ids=lambda lines: " | ".join(lines)[:40].strip(),
)
@pytest.mark.parametrize("path", ["/graphql", "/health"])
def test_no_word_in_connection_removes_the_name(
    deployment: Rehearsal, ada: Person, lines: list[str], path: str
) -> None:
    launch = json.dumps({"query": LAUNCH, "variables": {"p": launch_of("two_steps", {"marin/user": "eve@lab"})}})
    before = len(runs(deployment))
    answer = raw(deployment.layout.port, "POST", path, launch, ada.cookies(), [("Connection", line) for line in lines])
    assert answer[0] == 400, answer
    assert len(runs(deployment)) == before


@pytest.mark.parametrize(
    "lines",
    [["close"], ["keep-alive"], ["Keep-Alive, Upgrade"], ["TE, close"], [""], [",close ,"], ["close", "close"]],
    ids=" | ".join,
)
def test_what_browsers_and_programs_say_in_connection_is_taken(
    deployment: Rehearsal, ada: Person, lines: list[str]
) -> None:
    asked, headers = json.dumps({"query": WHO}), [("Connection", line) for line in lines]
    assert raw(deployment.layout.port, "POST", "/graphql", asked, ada.cookies(), headers)[0] == 200


def test_past_the_proxy_a_request_without_a_name_only_reads(deployment: Rehearsal) -> None:
    bare, before = deployment.beside_the_proxy(), len(runs(deployment))
    assert bare.ask(WHO)["version"]
    assert bare.launch("two_steps", tags={"marin/user": "eve@lab"})["__typename"] == "UnauthorizedError"
    assert bare.backfill("two_steps/data")["__typename"] == "UnauthorizedError"
    assert bare.ask(WIPE, path=["two_steps", "data"])["wipeAssets"]["__typename"] == "UnauthorizedError"
    assert len(runs(deployment)) == before


def test_no_mutation_comes_by_an_address(deployment: Rehearsal, ada: Person) -> None:
    address = f"/graphql?query={quote(SEEN)}"
    obeyed = deployment.beside_the_proxy().get(address)
    assert obeyed.json()["data"] == {"setNuxSeen": True}
    for path in (address, "/" + address, address.replace("graphql", "GraphQL")):
        answer = ada.get(path)
        assert answer.status_code in (403, 404) or "setNuxSeen" not in answer.text, said(answer)
    assert ada.get(address).status_code == 403
    assert ada.get("/notebook?path=/etc/x.ipynb&repoLocName=marin").status_code == 403


def test_another_sites_page_cannot_ask(deployment: Rehearsal, ada: Person) -> None:
    foreign = {"Origin": "https://evil.example"}
    assert deployment.beside_the_proxy().ask(WHO, headers=foreign)["version"]
    for origin in ("https://evil.example", "null", deployment.layout.url + ".evil.example"):
        assert ada.post("/graphql", {"query": WHO}, Origin=origin).status_code == 403
    assert ada.ask(WHO, headers={"Origin": deployment.layout.url})["version"]


def test_a_websocket_is_opened_for_our_own_page_alone(deployment: Rehearsal, ada: Person) -> None:
    foreign, own = "https://evil.example", deployment.layout.url
    ports, cookies = deployment.layout.ports, ada.cookies()
    assert upgrade(ports["webserver"], foreign, "") == 101
    assert upgrade(deployment.layout.port, foreign, cookies) == 403
    assert upgrade(deployment.layout.port, own, "") in (302, 401)
    assert upgrade(deployment.layout.port, own, cookies) == 101


def test_no_page_is_framed_or_guessed(deployment: Rehearsal, ada: Person) -> None:
    assert "X-Frame-Options" not in deployment.beside_the_proxy().get("/", Accept="text/html").headers
    page = ada.get("/", Accept="text/html")
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Server"] == "Apache"
    for method in ("TRACE", "PUT", "DELETE", "OPTIONS"):
        assert raw(deployment.layout.port, method, "/graphql", "", ada.cookies())[0] in (403, 405), method


def test_who_has_the_cookie_of_a_login_has_no_more_than_that(deployment: Rehearsal, ada: Person) -> None:
    """No token of the provider, and no secret, reaches a service or a browser in readable form."""
    name = "mod_auth_openidc_session"
    value = ada.cookie(name)
    parts = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in value.split(".")]
    assert not [part for part in parts if b"ada" in part or b"marin" in part]
    changed = value[:-2] + ("AA" if not value.endswith("AA") else "BB")
    answer = raw(deployment.layout.port, "POST", "/graphql", json.dumps({"query": WHO}), f"{name}={changed}")
    assert answer[0] == 401


def test_a_copied_cookie_is_of_no_use_after_a_logout(deployment: Rehearsal) -> None:
    ada = deployment.person("ada")
    copied, asked = ada.cookies(), json.dumps({"query": WHO})
    assert raw(deployment.layout.port, "POST", "/graphql", asked, copied)[0] == 200
    deployment.supervisor("restart", "proxy")
    deployment.await_all()
    assert ada.ask(WHO)["version"], "a restart of the proxy logs nobody out"
    out = ada.get(f"/oidc/callback?logout={quote(deployment.layout.url + '/health', safe='')}", Accept="text/html")
    assert out.status_code == 302, said(out)
    assert ada.post("/graphql", {"query": WHO}).status_code == 401
    assert raw(deployment.layout.port, "POST", "/graphql", asked, copied)[0] == 401


@pytest.mark.parametrize(("megabytes", "path"), [(60, "/graphql"), (11, "/graphql"), (60, "/health"), (60, "/")])
def test_a_large_body_does_not_reach_the_webserver(
    deployment: Rehearsal, ada: Person, megabytes: int, path: str
) -> None:
    body = json.dumps({"query": WHO, "padding": "x" * (megabytes << 20)})
    assert deployment.beside_the_proxy().post("/graphql", json.loads(body)).status_code == 200
    assert raw(deployment.layout.port, "POST", path, body, ada.cookies())[0] == 413


def test_a_body_of_a_large_launch_does(deployment: Rehearsal, ada: Person) -> None:
    assert ada.post("/graphql", {"query": WHO, "padding": "x" * (9 << 20)}).status_code == 200


def test_a_body_without_a_length_is_refused(deployment: Rehearsal, ada: Person) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", deployment.layout.port, timeout=60)
    headers = {"Content-Type": "application/json", "Cookie": ada.cookies()}
    connection.request("POST", "/graphql", iter([json.dumps({"query": WHO}).encode()]), headers, encode_chunked=True)
    assert connection.getresponse().status == 411
    connection.close()


def test_each_line_of_the_log_is_json_and_names_who_asked(deployment: Rehearsal, ada: Person) -> None:
    """Of requests that nobody has signed too, and of those with bytes that are no letters."""
    hostile = [
        b"GET /\xc3\xa9\x80 HTTP/1.1",
        b"GET /\x0b\x00 HTTP/1.1",
        b'GET /"\\x41\\ HTTP/1.1',
        b"\xff\xfe",
        b'GET /"user":"""", HTTP/1.1',
    ]
    for line in hostile:
        with socket.create_connection(("127.0.0.1", deployment.layout.port), timeout=60) as connection:
            connection.sendall(line + b"\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            while connection.recv(4096):
                pass
    deployment.person().get("/oidc/callback?code=x&state=y", Accept="text/html")
    deployment.person().get("/oidc/callback")
    ada.get("/the-last-page", Accept="text/html")
    path = deployment.layout.home / "logs/proxy-access.log"
    wait_until(lambda: "/the-last-page" in path.read_text(), "the log has the last request")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["user"] for line in lines if "/oidc/callback?code=x&" in line["request"]} == {"-"}
    assert {line["user"] for line in lines if "/the-last-page" in line["request"]} == {"ada@lab.example"}
    assert len([line for line in lines if line["status"] >= 400]) >= len(hostile)


def test_from_another_host_nothing_of_it_can_be_reached(deployment: Rehearsal, ada: Person) -> None:
    """From a network namespace: what listens on this machine's other address answers, and no port of a service does."""
    run_id = ada.launch("two_steps")["run"]["runId"]  # for the processes of a job
    wait_until(lambda: ada.run(run_id)[0] == "SUCCESS", "a run has ended", timeout_s=300)
    with another_host() as (ask, address):
        with socket.create_server((address, 0)) as open_to_all:
            assert ask(open_to_all.getsockname()[1]) == "connected"
        hidden = {port: command for _, port, command in listening(deployment.processes())}
        assert set(deployment.layout.ports.values()) < set(hidden), "and Ray has ports besides"
        assert {command: answer for port, command in hidden.items() if (answer := ask(port)) != "refused"} == {}
    assert os.stat(deployment.layout.home / "run/code.sock").st_uid == os.geteuid()
    assert os.stat(deployment.layout.home).st_mode & 0o077 == 0, "the code server's socket is in a folder of its owner"
    assert os.stat(deployment.layout.ray_folder).st_mode & 0o077 == 0, "Ray's sockets are, and the shipped code"


def test_secrets_are_their_owners_alone(deployment: Rehearsal) -> None:
    layout = deployment.layout
    known = [layout.secret(name) for name in ("postgres", "oidc_client", "oidc_cookies", "ray_token")]
    for path in (layout.home / "logs").iterdir():
        text = path.read_text(errors="replace")
        assert not [secret for secret in known if secret in text], path
    for process in psutil.process_iter(["cmdline"]):
        shown = " ".join(process.info["cmdline"] or ())
        assert not [secret for secret in known if secret in shown], shown


def runs(deployment: Rehearsal) -> list[dg.DagsterRun]:
    with deployment.instance() as instance:
        return list(instance.get_runs())


def raw(
    port: int, method: str, path: str, body: str, cookies: str = "", headers: Sequence[tuple[str, str]] = ()
) -> tuple[int, str]:
    """A request whose path and headers nobody tidies."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path)
    always = [("Content-Type", "application/json"), ("Accept", "application/json"), ("Content-Length", str(len(body)))]
    for name, value in [*always, *([("Cookie", cookies)] if cookies else []), *headers]:
        connection.putheader(name, value)
    connection.endheaders(body.encode())
    with connection.getresponse() as answer:
        found = answer.status, answer.read().decode(errors="replace")
    connection.close()
    return found


def upgrade(port: int, origin: str, cookies: str) -> int:
    """Ask for a websocket at /graphql; the answer's status."""
    key = base64.b64encode(secrets.token_bytes(16)).decode()
    lines = [
        "GET /graphql HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Protocol: graphql-ws",
        f"Origin: {origin}",
        *([f"Cookie: {cookies}"] if cookies else []),
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(connection.recv(4096).split()[1])


CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10).close()
    print("connected")
except ConnectionRefusedError:
    print("refused")
"""


@contextmanager
def another_host():
    """A network namespace with a cable to this machine. Yields what connects from there, and this machine's address."""
    name = f"marin{secrets.token_hex(3)}"
    here, there, ends = "10.213.7.1", "10.213.7.2", (f"{name}a", f"{name}b")

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    try:
        ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("A network namespace needs root and iproute2.")
    try:
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", name)
        ip("addr", "add", f"{here}/24", "dev", ends[0])
        ip("link", "set", ends[0], "up")
        ip("-n", name, "addr", "add", f"{there}/24", "dev", ends[1])
        ip("-n", name, "link", "set", ends[1], "up")

        def ask(port: int) -> str:
            command = ["ip", "netns", "exec", name, sys.executable, "-c", CONNECT, here, str(port)]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

        yield ask, here
    finally:
        subprocess.run(["ip", "link", "del", ends[0]], check=False, capture_output=True)
        ip("netns", "del", name)
