"""The data browser before the whole deployment on loopback: who gets in, what its session may do, and what is refused.

Its host name is another one than the UI's. Chromium is the browser where a person's browser decides.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, urlsplit

import pytest
import requests
from dagster_dev import LAUNCH
from person import Person, launch_of
from rehearsal import Rehearsal, rehearsal
from running import ROOT, wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
JSON = {"Accept": "application/json"}
SESSION, BROWSE_SESSION = "mod_auth_openidc_session", "marin_browse_session"
NAME = "documents/a=1,b 2"
"""A name with characters that mean something in addresses."""
HOSTILE = """<h1>A stranger's page</h1><style>@import '{evil}/a.css'; body {{background: url({evil}/css)}}</style>
<img src='{evil}/img' onerror="location='{evil}/error'"><script>top.location='{evil}/script'</script>
<link rel=prefetch href='{evil}/prefetch'><link rel=stylesheet href='{evil}/link.css'>
<iframe src='{evil}/frame'></iframe>
<object data='{evil}/object'></object><video src='{evil}/video' autoplay></video><base href='{evil}/'>
<meta http-equiv=refresh content='0; url={evil}/refresh'><svg><image href='{evil}/svg'/></svg>
<form action='{evil}/form'><input autofocus onfocus='this.form.submit()'></form><embed src='{evil}/embed'>"""
METADATA = """query($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
  assetMaterializations(limit: 1) { metadataEntries { label ... on UrlMetadataEntry { url } } } } } }"""
STORE = """
import json, sys
from stored_outputs_for_browsing import store_output
name, text = json.load(sys.stdin)
rows = [{"id": f"page/{i}#0", "text": f"Text {i}."} for i in range(250)]
print(store_output(sys.argv[1], name, {"part-0.jsonl.zst": rows, "raw.jsonl": [{"id": "evil", "text": text}]}))
"""


@pytest.fixture(scope="module")
def deployment() -> Iterator[Rehearsal]:
    with rehearsal() as deployment:
        yield deployment


@pytest.fixture(scope="module")
def ada(deployment: Rehearsal) -> Person:
    """Of the operators, at the UI."""
    return deployment.person("ada")


@pytest.fixture(scope="module")
def bob(deployment: Rehearsal) -> Person:
    """Of the readers, at the data browser."""
    return deployment.looker("bob")


@pytest.fixture(scope="module")
def evil() -> Iterator[tuple[str, list[str]]]:
    """A server that should get no request, and the paths of those that it got."""
    asked: list[str] = []

    class Evil(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.fixture(scope="module")
def output(deployment: Rehearsal, evil: tuple[str, list[str]]) -> str:
    """The path of an output with rows, below the prefix of the deployment's bucket."""
    code = os.pathsep.join(str(ROOT / folder) for folder in ("", "tests/support"))
    env = {**os.environ, **deployment.layout.environment(), "PYTHONPATH": code}
    given = json.dumps([NAME, HOSTILE.format(evil=evil[0])])
    command = [sys.executable, "-c", STORE, env["MARIN_PREFIX"]]
    stored = subprocess.run(command, env=env, input=given, capture_output=True, text=True, check=True)
    return stored.stdout.strip().splitlines()[-1]


def page(kind: str, path: str, **query: object) -> str:
    values = {"path": path, **query}
    return f"/{kind}?" + "&".join(f"{name}={quote(str(value), safe='')}" for name, value in values.items())


def test_readers_and_operators_see_rows_and_nobody_else_does(deployment: Rehearsal, bob: Person, output: str) -> None:
    rows = page("rows", f"{output}/part-0.jsonl.zst", start=200)
    for person in (bob, deployment.looker("ada")):
        answer = person.get(rows)
        assert answer.status_code == 200
        assert "Text 249." in answer.text
    eve = deployment.looker()
    assert eve.log_in("eve").status_code == 403
    assert eve.get(rows).status_code == 403
    nobody = deployment.looker()
    for path in ("/", rows, "/static/browse.js", "/graphql", "/health/", "/healthy", "//health/../rows"):
        assert nobody.get(path, **JSON).status_code in (401, 404), path
    sent = nobody.get(rows, Accept="text/html")
    assert sent.status_code == 302
    assert sent.headers["Location"].startswith(f"{deployment.layout.provider_url}/auth?")


def test_it_has_a_health_check_of_its_own(deployment: Rehearsal) -> None:
    nobody = deployment.looker()
    assert (nobody.get("/health").status_code, nobody.get("/health").text) == (200, "ok")
    deployment.supervisor("stop", "browse")
    try:
        assert nobody.get("/health").status_code == 503
        assert deployment.person().get("/health").status_code == 200, "the UI does not need it"
    finally:
        deployment.supervisor("start", "browse")
        deployment.await_all()


def test_nothing_of_dagster_is_under_its_name_and_it_only_reads(deployment: Rehearsal, bob: Person) -> None:
    for path in ("/graphql", "/graphql?query={version}", "/server_info", "/runs", "/%67raphql", "//graphql"):
        answer = bob.get(path)
        assert answer.status_code == 404, path
        assert "dagster" not in answer.text.lower()
    assert bob.post("/graphql", {"query": "{ version }"}).status_code == 405
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        answer = send(deployment.layout.browse_url, method, "/", bob.cookies())
        assert answer.status_code in (403, 405), method


@pytest.mark.parametrize("name", ["ada", "bob"])
def test_a_session_of_one_name_is_of_no_use_at_the_other(deployment: Rehearsal, name: str) -> None:
    """Neither by the name of its own cookie nor by that of the other's."""
    at_ui, at_browser = deployment.person(name), deployment.looker(name)
    ui, browser = deployment.layout.url, deployment.layout.browse_url
    own = {ui: at_ui.cookie(SESSION), browser: at_browser.cookie(BROWSE_SESSION)}
    assert all(own.values())

    def status(url: str, value: str) -> int:
        cookies = f"{SESSION}={value}; {BROWSE_SESSION}={value}"
        return send(url, "GET", "/", cookies).status_code

    assert {url: status(url, value) for url, value in own.items()} == {ui: 200, browser: 200}
    assert status(ui, own[browser]) == status(browser, own[ui]) == 401
    assert not at_ui.cookie(BROWSE_SESSION)
    assert not at_browser.cookie(SESSION)


def test_its_page_cannot_launch_at_the_ui_in_the_name_of_an_operator(deployment: Rehearsal, ada: Person) -> None:
    """Where both are of one site, as marin.example.org and browse.example.org, a browser would send the cookie too."""
    launch = {"query": LAUNCH, "variables": {"p": launch_of("two_steps", {})}}
    with deployment.instance() as instance:
        before = instance.get_runs_count()
        assert ada.post("/graphql", launch, Origin=deployment.layout.browse_url).status_code == 403
        assert instance.get_runs_count() == before
    foreign = deployment.looker("ada")
    assert foreign.get("/", Origin=deployment.layout.url).status_code == 403


def test_the_service_gets_no_cookie_and_no_token(deployment: Rehearsal, bob: Person) -> None:
    """A server in its place, which answers with the headers that it got."""

    class Echo(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(dict(self.headers)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with instead_of_it(deployment, Echo):
        got = {name.lower() for name in bob.get("/", Authorization="Bearer x").json()}
    assert "host" in got
    assert not got & {"cookie", "authorization", "x-marin-user"}
    assert not [name for name in got if "oidc" in name]


def test_a_page_arrives_while_it_is_written(deployment: Rehearsal, bob: Person) -> None:
    """A server in its place, whose second piece waits until the first has arrived."""
    arrived = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"first")
            self.wfile.write(b"second" if arrived.wait(30) else b"late")

        def log_message(self, *_: object) -> None:
            pass

    with instead_of_it(deployment, Slow):
        answer = send(deployment.layout.browse_url, "GET", "/search", bob.cookies(), stream=True)
        assert answer.raw.read(5) == b"first"
        arrived.set()
        assert answer.raw.read() == b"second"


def test_addresses_reach_it_as_they_are(deployment: Rehearsal, bob: Person, output: str) -> None:
    answer = bob.get(page("row", f"{output}/part-0.jsonl.zst", id="page/7#0"))
    assert answer.status_code == 200
    assert "Text 7." in answer.text
    hard = "%2f?&=+ #\"'<\\é%00x"
    assert "No row of" in bob.get(page("row", f"{output}/part-0.jsonl.zst", id=hard)).text
    for outside in ("../../etc/passwd", "/etc/passwd", "gs://marin/other", "gs://marinade/x", "file:///etc/passwd"):
        assert bob.get(page("file", outside)).status_code == 403, outside


def test_an_asset_leads_to_its_rows_and_back(deployment: Rehearsal, ada: Person, bob: Person) -> None:
    run_id = ada.launch("two_steps")["run"]["runId"]
    wait_until(lambda: ada.run(run_id)[0] == "SUCCESS", "the run ends", timeout_s=300)
    [event] = ada.ask(METADATA, key={"path": ["two_steps", "data"]})["assetOrError"]["assetMaterializations"]
    [link] = [entry["url"] for entry in event["metadataEntries"] if entry["label"] == "browse"]
    assert link.startswith(f"{deployment.layout.browse_url}/output?path=gs%3A%2F%2Fmarin%2Foutputs%2Ftwo_steps%2Fdata-")
    shown = bob.get(link.removeprefix(deployment.layout.browse_url))
    assert shown.status_code == 200
    assert f'href="{deployment.layout.url}/assets/two_steps/data"' in shown.text
    addresses = dict(re.findall(r'<a href="(/file[^"]+)">its (record|log)</a>', shown.text))
    record, log = (bob.get(html.unescape(address)) for address in addresses)
    assert "two_steps/data" in record.text
    assert log.status_code == 200


# In Chromium


@pytest.fixture
def open_page(deployment: Rehearsal) -> Iterator[Callable[..., object]]:
    """Opens a page of the data browser as a new person's browser does, by way of the login."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the group `rehearsal` is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed.")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def open_page(name: str, address: str, **options: object):
            tab = chromium.new_context(viewport={"width": 1280, "height": 900}, **options).new_page()
            tab.goto(address)
            log_in(tab, name)
            tab.wait_for_url(f"{address.split('?')[0]}*", timeout=60_000)
            return tab

        yield open_page
        chromium.close()


def log_in(tab, name: str) -> None:
    tab.fill("input[name=login]", name)
    tab.fill("input[name=password]", "any")
    tab.click("button[type=submit]")
    tab.get_by_role("button", name="Continue").click()


def test_a_reader_logs_in_and_looks_at_rows(deployment: Rehearsal, output: str, open_page) -> None:
    tab = open_page("bob", deployment.layout.browse_url + page("output", output))
    tab.get_by_role("link", name="part-0.jsonl.zst").click()
    tab.get_by_text("Text 99.", exact=True).wait_for()
    tab.get_by_role("link", name="Next").first.click()
    tab.get_by_text("Text 199.", exact=True).wait_for()
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.get_by_role("link", name="The way of this document").wait_for()
    picture(tab, "browse-behind-the-login")
    tab.goto(f"{deployment.layout.browse_url}/")
    tab.fill("input[name=name]", "a=1")
    tab.get_by_role("button", name="Filter").click()
    tab.get_by_role("link", name=NAME).click()
    tab.get_by_role("link", name="raw.jsonl").wait_for()


def test_a_strangers_page_is_shown_behind_the_proxy_and_asks_nobody(
    deployment: Rehearsal, output: str, evil: tuple[str, list[str]], open_page
) -> None:
    tab = open_page("bob", deployment.layout.browse_url + page("page", f"{output}/raw.jsonl", row=0, at="/text"))
    requests_of_page: list[str] = []
    tab.on("request", lambda request: requests_of_page.append(request.url))
    tab.reload()
    tab.frame_locator("iframe").get_by_role("heading", name="A stranger's page").wait_for()
    tab.wait_for_timeout(2000)  # longer than the refresh, the script and the images would take
    hosts = {urlsplit(address).netloc for address in requests_of_page if not address.startswith("about:")}
    assert hosts == {urlsplit(deployment.layout.browse_url).netloc}
    assert evil[1] == []
    assert tab.url.startswith(deployment.layout.browse_url)
    picture(tab, "stranger-behind-the-login")


def test_a_script_that_ran_there_could_not_launch(deployment: Rehearsal, output: str, open_page) -> None:
    """As if a script had got through the escapes, the sandbox and the policy: a browser that ignores the policy."""
    tab = open_page("ada", f"{deployment.layout.browse_url}/", bypass_csp=True)
    ui = tab.context.new_page()
    ui.goto(f"{deployment.layout.url}/")
    if "/interaction/" in ui.url:  # the provider knows who it is, and asks whether the other page may know too
        ui.get_by_role("button", name="Continue").click()
    ui.wait_for_url(f"{deployment.layout.url}/**", timeout=60_000)
    launch = json.dumps({"query": LAUNCH, "variables": {"p": launch_of("two_steps", {})}})
    ask = """async ([address, body, mode]) => {
      try { const answer = await fetch(address, {method: 'POST', mode, credentials: 'include', body,
              headers: {'Content-Type': mode === 'cors' ? 'application/json' : 'text/plain'}})
            return String(answer.status) } catch (error) { return 'refused' } }"""
    graphql = f"{deployment.layout.url}/graphql"
    with deployment.instance() as instance:
        before = instance.get_runs_count()
        for mode in ("cors", "no-cors"):
            assert tab.evaluate(ask, [graphql, launch, mode]) in ("refused", "0", "403")
        assert tab.evaluate(ask, ["/graphql", launch, "cors"]) == "405"
        assert tab.evaluate("document.cookie") == ""
        assert instance.get_runs_count() == before
        assert ui.evaluate(ask, [graphql, launch, "cors"]) == "200", "the UI's own page can"
        wait_until(lambda: instance.get_runs_count() == before + 1, "the run of the UI's own page")


def picture(tab, name: str) -> None:
    if folder := os.environ.get("PICTURES"):
        tab.screenshot(path=f"{folder}/{name}.png")


def send(url: str, method: str, path: str, cookies: str, *, stream: bool = False) -> requests.Response:
    """A request with these cookies alone, to the host name of `url`."""
    there = f"http://127.0.0.1:{urlsplit(url).port}{path}"
    headers = {"Host": urlsplit(url).netloc, "Cookie": cookies, **JSON}
    return requests.request(method, there, headers=headers, allow_redirects=False, timeout=60, stream=stream)


@contextmanager
def instead_of_it(deployment: Rehearsal, answers: type[BaseHTTPRequestHandler]) -> Iterator[None]:
    """A server at the port of the data browser, which is stopped meanwhile."""
    deployment.supervisor("stop", "browse")
    try:
        with ThreadingHTTPServer(("127.0.0.1", deployment.layout.ports["browse"]), answers) as server:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            yield
            server.shutdown()
    finally:
        deployment.supervisor("start", "browse")
        deployment.await_all()
