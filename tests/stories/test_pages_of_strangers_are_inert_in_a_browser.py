"""A web page among the rows is shown by a real Chromium: it calls nobody, and does not leave its frame."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser_server import browsing
from stored_outputs_for_browsing import store_output

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WAYS = {
    "script": '<script src="{url}"></script>',
    "inline script": "<script>fetch('{url}'); top.location = '{url}'; document.title = 'left'</script>",
    "image": '<img src="{url}">',
    "srcset": '<img srcset="{url} 2x">',
    "onerror": "<img src=x onerror=\"fetch('{url}')\">",
    "onload": "<body onload=\"fetch('{url}')\">",
    "svg": '<svg><image href="{url}"/><script href="{url}"></script></svg>',
    "style sheet": '<link rel="stylesheet" href="{url}">',
    "import": "<style>@import '{url}';</style>",
    "style": '<p style="background: url({url})">text</p>',
    "font": "<style>@font-face {{ font-family: f; src: url({url}) }} p {{ font-family: f }}</style><p>text</p>",
    "prefetch": '<link rel="prefetch" href="{url}"><link rel="preload" as="image" href="{url}">',
    "preconnect": '<link rel="preconnect" href="{url}"><link rel="dns-prefetch" href="{url}">',
    "refresh": '<meta http-equiv="refresh" content="0; url={url}">',
    "policy": '<meta http-equiv="Content-Security-Policy" content="default-src *"><img src=\'{url}\'>',
    "frame": '<iframe src="{url}"></iframe>',
    "frame in a frame": "<iframe srcdoc=\"<img src='{url}'>\"></iframe>",
    "object": '<object data="{url}"></object><embed src="{url}">',
    "video": '<video src="{url}" poster="{url}" autoplay></video><audio src="{url}" autoplay></audio>',
    "form": '<form action="{url}" id="f"><input autofocus onfocus="f.submit()"></form>',
    "base": '<base href="{url}" target="_top"><img src="a.png"><a href="b" autofocus>b</a>',
    "end of the frame": '</iframe>"></iframe><img src="{url}"><script>fetch("{url}")</script>',
    "attribute": "\"' onload=\"fetch('{url}')\" x='",
    "javascript": "<iframe src=\"javascript:fetch('{url}')\"></iframe>",
    "manifest": '<link rel="manifest" href="{url}"><link rel="icon" href="{url}">',
}


class _Listener(BaseHTTPRequestHandler):
    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the paths that were requested there."""
    requests: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Listener", (_Listener,), {"requests": requests}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_no_way_out_of_a_page_reaches_a_server(tmp_path: Path, listener: tuple[str, list[str]]) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the group `rehearsal` is not installed")
    address, requests = listener
    store_output(str(tmp_path), "documents/web", {})
    pages = [way.format(url=f"{address}/{number}") for number, way in enumerate(WAYS.values())]
    rows = [json.dumps({"id": page, "text": f"<html><body>{page}<p>the end</p></body></html>"}) for page in pages]
    (tmp_path / "documents/web-abc123/part-0.jsonl").write_text("\n".join(rows) + "\n")
    with browsing(str(tmp_path)) as server, sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        control = chromium.new_page()
        control.set_content(f'<img src="{address}/control">')
        control.wait_for_load_state("networkidle")
        assert requests == ["/control"]  # the listener hears what a page loads
        for number, name in enumerate(WAYS):
            for place in ("page", "row", "cell"):
                tab = chromium.new_page()
                file = "documents/web-abc123/part-0.jsonl"
                url = f"http://127.0.0.1:{server.port}/{place}?path={file}&row={number}&at=/text"
                tab.goto(url)
                tab.wait_for_load_state("networkidle")
                tab.wait_for_timeout(150)  # a refresh, and scripts if they ran
                assert tab.url == url, name
                assert "left" not in tab.title(), name
                assert tab.locator("iframe").count() == (place == "page"), name
                if (place, name) == ("page", "image"):
                    assert tab.frame_locator("iframe").get_by_text("the end").is_visible()
                tab.close()
        chromium.close()
    assert requests == ["/control"]
