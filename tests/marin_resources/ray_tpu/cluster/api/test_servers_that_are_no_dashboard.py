"""A server that is not a Ray dashboard, an old dashboard, no server: each gives one sentence."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from one_sentence import one_sentence

from marin_resources.ray_tpu.cluster.api.jobs_api import (
    ApiError,
    JobsApi,
    UnreachableError,
)
from marin_resources.ray_tpu.cluster.api.token import Token

NO_ONE = "0123456789abcdef" * 4
"""A token that no cluster has."""


class Pretender(BaseHTTPRequestHandler):
    """A server that gives the same response to every request."""

    answer: tuple[int, str, str]

    def do_GET(self) -> None:
        status, kind, text = self.answer
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(text.replace("<token>", self.headers.get("Authorization", "")).encode())

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def pretender(status: int, text: str, kind: str = "application/json") -> Iterator[str]:
    answers = type("Answers", (Pretender,), {"answer": (status, kind, text)})
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def ask_pretender(address: str, call: Callable[[JobsApi], Awaitable[Any]] = lambda api: api.version()) -> None:
    async def work() -> None:
        async with JobsApi(address, Token(NO_ONE, "RAY_AUTH_TOKEN"), timeout_s=2) as api:
            await call(api)

    asyncio.run(work())


def old(version: str, **more: str) -> str:
    return json.dumps({"version": "4", "ray_version": version, **more})


@pytest.mark.parametrize(
    ("status", "text", "told"),
    [
        (200, "<!doctype html><title>Welcome</title>", "HTML to GET /api/version"),
        (404, "<html>nothing here</html>", "it answered 404 to GET /api/version"),
        (404, "no route", "it answered 404 to GET /api/version"),
        (405, "", "it answered 405"),
        (302, "", "it answered 302 to GET /api/version"),
        (200, "[1, 2]", "is not Ray's"),
        (200, "", "is not Ray's"),
        (200, '{"version": "1"}', "is not Ray's"),
    ],
)
def test_a_server_that_is_no_ray_dashboard_is_one_sentence(status: int, text: str, told: str) -> None:
    with pretender(status, text, "text/html") as address, pytest.raises(ApiError, match=told) as error:
        ask_pretender(address)
    assert one_sentence(error).startswith(f"There is no Ray dashboard at {address} (")
    assert error.value.__context__ is None


def test_a_job_is_not_gone_because_a_gateway_has_no_such_page() -> None:
    with pretender(404, "default backend - 404", "text/plain") as address:
        with pytest.raises(ApiError, match="no Ray dashboard"):
            ask_pretender(address, lambda api: api.info("mine"))
        with pytest.raises(ApiError, match="no Ray dashboard"):
            ask_pretender(address, lambda api: api.has_package("gcs://a.zip"))


@pytest.mark.parametrize(
    "text", [old("2.59.1", session_name="s"), old("1.13.0"), old("2.60.0"), old("", session_name="s")]
)
def test_a_ray_that_is_too_old_is_one_sentence(text: str) -> None:
    with pretender(200, text) as address, pytest.raises(ApiError, match=r"runs Ray '.*', expected 2\.60") as error:
        ask_pretender(address)
    one_sentence(error)


@pytest.mark.parametrize("version", ["2.60.3", "2.61.0", "3.0.0.dev0"])
def test_a_newer_ray_is_taken(version: str) -> None:
    with pretender(200, old(version, session_name="s")) as address:
        ask_pretender(address)


def test_an_answer_that_breaks_off_may_come_whole_the_next_time() -> None:
    with (
        pretender(200, '{"version": "4", "ray_ver') as address,
        pytest.raises(UnreachableError, match="no JSON") as error,
    ):
        ask_pretender(address)
    one_sentence(error)
    assert error.value.__context__ is None


def test_a_server_that_echoes_what_it_was_sent_does_not_bring_the_token_to_light() -> None:
    for status, kind in ((500, UnreachableError), (400, ApiError)):
        with pretender(status, f"What is {NO_ONE}", "text/plain") as address, pytest.raises(kind) as error:
            ask_pretender(address)
        assert NO_ONE not in str(error.value)


def test_a_name_that_nobody_knows_may_be_known_later_and_what_is_no_address_never() -> None:
    with pytest.raises(UnreachableError, match=r"the name of http://no-such-host\.invalid:8265 is not known"):
        ask_pretender("http://no-such-host.invalid:8265")
    with pytest.raises(ApiError, match="is no address"):
        ask_pretender("http://[::8265")


def test_https_that_is_none_is_one_sentence() -> None:
    with pretender(200, "{}") as address, pytest.raises(ApiError, match="does not speak https") as error:
        ask_pretender(address.replace("http://", "https://"))
    one_sentence(error)
