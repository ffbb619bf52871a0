"""Two proxies of deploy/kubernetes with one server of sessions, on loopback.

Apache, Redis and the provider are real. The service behind the proxies is a page that answers 200.
"""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
import requests
from container_apache import ContainerApache, container_apache, container_ports, listens
from kubernetes_files import FOLDER, container_of
from person import Person
from redis_server import REDIS
from running import wait_until

from marin_resources.ray_tpu.cluster.local.head import free_ports

pytest.importorskip("supervisor", reason="the group `rehearsal` is not installed: make rehearsal")

from local_deployment.services import node
from local_deployment.tools import install_provider

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning"),
]
SESSION, BROWSE_SESSION = "mod_auth_openidc_session", "marin_browse_session"


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The server, which may be away."""

    port: int

    @contextmanager
    def up(self) -> Iterator[subprocess.Popen[bytes]]:
        here = {"0.0.0.0": "127.0.0.1", "6379": str(self.port)}
        command = container_of("marin-sessions")["command"]
        assert here.keys() <= set(command)
        process = subprocess.Popen([here.get(word, word) for word in command], stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: listens(self.port), "Redis listens")
            yield process
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True, kw_only=True)
class TwoProxies:
    proxies: tuple[ContainerApache, ContainerApache]
    sessions: Sessions

    @property
    def browse_url(self) -> str:
        """The data browser's, at the first proxy."""
        return f"https://browse.localhost:{self.proxies[0].tls}"

    def log_in(self, url: str = "") -> Person:
        """At the first proxy, as a reader."""
        person = Person(url or self.proxies[0].url, trusts=True)
        assert person.log_in("bob").text == "behind"
        return person

    def answers(self, person: Person) -> list[int]:
        """What each proxy answers to the person's cookie."""
        return [ask(proxy, "/runs", person).status_code for proxy in self.proxies]

    def log_out(self, person: Person) -> requests.Response:
        """At the second proxy."""
        address = quote(f"{self.proxies[0].url}/health", safe="")
        return ask(self.proxies[1], f"/oidc/callback?logout={address}", person, Accept="text/html")


def ask(proxy: ContainerApache, path: str, person: Person, **headers: str) -> requests.Response:
    """As another browser, with a copy of the person's cookies."""
    given = {"Cookie": person.cookies(), "Accept": "application/json", **headers}
    return requests.get(f"{proxy.url}{path}", headers=given, verify=False, allow_redirects=False, timeout=20)


class _Behind(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"behind")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoProxies]:
    if REDIS is None:
        pytest.skip("Redis is not installed: apt install redis-server")
    folder = tmp_path_factory.mktemp("two")
    folder.chmod(0o755)
    first, second = (container_ports(folder / name) for name in ("first", "second"))
    provider_port, sessions_port = free_ports(2)
    with ExitStack() as stack:
        behind = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), _Behind))
        Thread(target=behind.serve_forever, args=(0.02,), daemon=True).start()
        stack.callback(behind.shutdown)
        pair = TwoProxies(proxies=(first, second), sessions=Sessions(port=sessions_port))
        stack.enter_context(_provider(folder, provider_port, [first.url, pair.browse_url]))
        settings = (FOLDER / "proxy.env").read_text().splitlines()
        names = dict(line.split("=", 1) for line in settings if not line.startswith("#"))
        names |= {
            "MARIN_URL": first.url,
            "MARIN_BROWSE_URL": pair.browse_url,
            "MARIN_BROWSER": f"127.0.0.1:{behind.server_port}",
            "MARIN_PROVIDER": f"http://127.0.0.1:{provider_port}",
            "MARIN_WEBSERVER": f"127.0.0.1:{behind.server_port}",
            "MARIN_READ_ONLY": f"127.0.0.1:{behind.server_port}",
            "MARIN_SESSIONS_SERVER": f"127.0.0.1:{sessions_port}",
        }
        for proxy in (first, second):
            stack.enter_context(container_apache(proxy, container_of("marin-proxy")["command"], names))
        yield pair


@contextmanager
def _provider(folder: Path, port: int, hosts: list[str]) -> Iterator[None]:
    place = install_provider(folder)
    (folder / "client_secret").write_text("s")
    command = [str(node()), "provider.mjs", str(port), str(folder / "client_secret")]
    command += [f"{host}/oidc/callback" for host in hosts]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: listens(port), "the provider listens", timeout_s=60)
        yield
    finally:
        process.kill()
        process.wait()


def test_a_login_at_one_proxy_holds_at_the_other_and_a_logout_at_one_ends_it_at_both(two: TwoProxies) -> None:
    with two.sessions.up():
        person = two.log_in()
        assert two.answers(person) == [200, 200]
        assert two.log_out(person).status_code == 302
        assert two.answers(person) == [401, 401]


def test_sessions_of_the_data_browser_are_in_the_same_server_and_of_no_use_at_the_ui(two: TwoProxies) -> None:
    """Even where somebody has written one passphrase for both."""
    browser = {"Host": two.browse_url.removeprefix("https://")}
    with two.sessions.up():
        values = {
            SESSION: two.log_in().cookie(SESSION),
            BROWSE_SESSION: two.log_in(two.browse_url).cookie(BROWSE_SESSION),
        }

        def answers(value: str) -> list[int]:
            """Of the UI and of the browser, to this session by whatever name."""
            cookies = {"Cookie": f"{SESSION}={value}; {BROWSE_SESSION}={value}", "Accept": "application/json"}
            url = f"{two.proxies[0].url}/"
            given = [cookies, {**cookies, **browser}]
            return [requests.get(url, headers=headers, verify=False, timeout=20).status_code for headers in given]

        assert {name: answers(value) for name, value in values.items()} == {
            SESSION: [200, 401],
            BROWSE_SESSION: [401, 200],
        }


def test_nobody_gets_in_while_the_server_of_sessions_is_away(two: TwoProxies) -> None:
    with two.sessions.up():
        person = two.log_in()
    assert two.answers(person) == [401, 401]
    page = ask(two.proxies[0], "/runs", person, Accept="text/html")
    assert (page.status_code, "/auth" in page.headers["Location"]) == (302, True), "the provider is asked"
    stranger = Person(two.proxies[0].url, trusts=True)
    refused = stranger.log_in("bob")
    assert refused.status_code == 500, "the login ends with an error"
    assert not stranger.cookie(SESSION)
    assert two.answers(stranger) == [401, 401]
    assert requests.get(f"{two.proxies[0].url}/health", verify=False, timeout=60).text == "ok"


def test_a_server_that_hangs_lets_nobody_in_and_nobody_waits_for_long(two: TwoProxies) -> None:
    with two.sessions.up() as server:
        person = two.log_in()
        server.send_signal(signal.SIGSTOP)
        assert two.answers(person) == [401, 401]  # each within the time limit of a request
        two.log_out(person)
        server.send_signal(signal.SIGCONT)
        assert two.answers(person) == [200, 200], "the logout did not reach the server"
        assert two.log_out(person).status_code == 302
        assert two.answers(person) == [401, 401]


def test_after_a_restart_of_the_server_everybody_is_asked_again(two: TwoProxies) -> None:
    with two.sessions.up():
        person = two.log_in()
    with two.sessions.up():
        assert two.answers(person) == [401, 401]
        assert two.answers(two.log_in()) == [200, 200]
        assert two.answers(person) == [401, 401]


def test_the_server_obeys_no_command_but_those_of_the_proxy(two: TwoProxies) -> None:
    with two.sessions.up():
        person = two.log_in()
        for command in (b"KEYS *", b"SCAN 0", b"FLUSHALL", b"CONFIG GET *", b"EVAL 1 0", b"ACL LIST", b"SHUTDOWN"):
            with socket.create_connection(("127.0.0.1", two.sessions.port), timeout=10) as connection:
                connection.sendall(command + b"\r\n")
                assert connection.recv(100).startswith(b"-NOPERM"), command
        assert two.answers(person) == [200, 200]


def test_the_cookie_only_names_the_session(two: TwoProxies) -> None:
    with two.sessions.up():
        assert len(two.log_in().cookie(SESSION)) < 64
