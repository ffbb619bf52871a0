"""Answers that mean harm, or that are written badly: each is an answer or one failure, within its limits."""

from __future__ import annotations

import gzip
import ipaddress
import socket
import threading
import time
import zlib
from datetime import UTC, datetime

import pytest

from marin_assets.stages.download.fetch.exchange import Answer, Client, Limits, retry_after_s
from marin_assets.stages.download.fetch.guard import FetchFailure, Guard
from marin_assets.stages.download.links.addresses import Url, canonical_url

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PAGE = b"<p>owls</p>"
ZEROS = b"0" * 20_000_000
LIMITS = Limits(body_bytes=1_000_000, patience_s=5.0, min_bytes_per_s=1000.0)
ANSWERS = {
    "no reason": (b"HTTP/1.1 200\r\n\r\n" + PAGE, PAGE),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n" + PAGE, PAGE),
    "a folded header": (HEAD + b"X: a\r\n b\r\n\r\n" + PAGE, PAGE),
    "letters beyond ASCII": (HEAD + b"X: \xfc\xff\r\n\r\n" + PAGE, PAGE),
    "a negative length": (HEAD + b"Content-Length: -7\r\n\r\n" + PAGE, PAGE),
    "no body": (HEAD + b"\r\n", b""),
    "chunks": (CHUNKED + b"b\r\n" + PAGE + b"\r\n0\r\n\r\n", PAGE),
    "plain bytes below gzip": (HEAD + b"Content-Encoding: gzip\r\n\r\n" + PAGE, PAGE),
}
FAILURES = {
    "a gzip bomb": (HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(ZEROS), "too_large"),
    "gzip twice": (HEAD + b"Content-Encoding: gzip, gzip\r\n\r\n" + gzip.compress(gzip.compress(ZEROS)), "too_large"),
    "a deflate bomb": (HEAD + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(ZEROS), "too_large"),
    "a stated length": (HEAD + b"Content-Length: 99999999999\r\n\r\n", "too_large"),
    "headers without an end": (b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, "too_large"),
    "trailers without an end": (CHUNKED + b"1\r\na\r\n0\r\n" + b"X: y\r\n" * 400_000, "too_large"),
    "many headers": (HEAD + b"X: y\r\n" * 5000 + b"\r\n", "bad_answer"),
    "a long header": (HEAD + b"X: " + b"y" * 200_000 + b"\r\n\r\n", "bad_answer"),
    "no head": (PAGE, "bad_answer"),
    "a status of one digit": (b"HTTP/1.1 2 OK\r\n\r\n", "bad_answer"),
    "a large chunk": (CHUNKED + b"FFFFFFFFFFFFFFFF\r\nabc", "cut"),
    "a negative chunk": (CHUNKED + b"-5\r\nabc", "cut"),
    "a cut chunk": (CHUNKED + b"5\r\nab", "cut"),
    "no last chunk": (CHUNKED + b"2\r\nab\r\n", "cut"),
    "a cut body": (HEAD + b"Content-Length: 100\r\n\r\n" + PAGE, "cut"),
    "no bytes": (b"", "connection"),
}


def answer_to(data: bytes) -> Answer:
    """Fetch from a server that sends these bytes."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(20)
                try:
                    connection.recv(65536)
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        guard = Guard(
            allowed=(ipaddress.ip_network("127.0.0.0/8"),), fixed={"a.example": "127.0.0.1"}, resolve=lambda host: []
        )
        url = canonical_url(f"http://a.example:{listening.getsockname()[1]}/")
        assert isinstance(url, Url)
        try:
            return Client(guard, "OwlBot/1.0").fetch(url, LIMITS, guard.addresses(url.host))
        finally:
            thread.join()


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_written_badly_is_read(name: str) -> None:
    data, body = ANSWERS[name]
    answer = answer_to(data)
    assert (answer.status, answer.body) == (200, body)


@pytest.mark.parametrize("name", FAILURES)
def test_an_answer_that_means_harm_is_one_failure_within_its_limits(name: str) -> None:
    data, reason = FAILURES[name]
    began_s = time.monotonic()
    with pytest.raises(FetchFailure) as failure:
        answer_to(data)
    assert failure.value.reason == reason
    assert time.monotonic() - began_s < 5


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [("120", 120.0), ("Sat, 01 Jan 2000 00:01:00 GMT", 60.0), ("Fri, 31 Dec 1999 00:00:00 GMT", 0.0), ("-3", None),
     ("soon", None), ("", None), ("9" * 40, None)],
)  # fmt: skip
def test_a_time_to_wait_is_a_number_or_a_date(text: str, wait_s: float | None) -> None:
    assert retry_after_s({"retry-after": text}, datetime(2000, 1, 1, tzinfo=UTC)) == wait_s
