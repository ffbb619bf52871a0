"""Many small requests in one: each is answered on its own, with its own status."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from http.client import responses
from urllib.parse import urlsplit

from fake_gcs.call import Answer, Call, Part, parts_of
from fake_gcs.refusals import RefusalError, invalid

MOST_CALLS = 100
BOUNDARY = "batch_of_answers"


async def answer_batch(call: Call, answer: Callable[[Call], Awaitable[Answer]]) -> Answer:
    parts = parts_of(await call.read(), call.headers.get("Content-Type", ""))
    if len(parts) > MOST_CALLS:
        raise invalid(f"The batch of {len(parts)} calls is too large: the most is {MOST_CALLS}.")
    body = b"".join([await _answer_part(part, answer) for part in parts]) + f"--{BOUNDARY}--\r\n".encode()
    return Answer(headers={"Content-Type": f"multipart/mixed; boundary={BOUNDARY}"}, body=body)


async def _answer_part(part: Part, answer: Callable[[Call], Awaitable[Answer]]) -> bytes:
    try:
        reply = await answer(_call_in(part))
    except RefusalError as refusal:
        reply = Answer(status=refusal.status, headers={"Content-Type": "application/json"}, body=refusal.body())
    names = part.headers.get("content-id", "").strip("<>")
    lines = [f"--{BOUNDARY}", "Content-Type: application/http"]
    lines += [f"Content-ID: <response-{names}>"] if names else []
    lines += ["", f"HTTP/1.1 {reply.status} {responses[reply.status]}"]
    lines += [f"{name}: {value}" for name, value in {**reply.headers, "Content-Length": len(reply.body)}.items()]
    return "\r\n".join([*lines, "", ""]).encode() + bytes(reply.body) + b"\r\n"


def _call_in(part: Part) -> Call:
    head, _, body = bytes(part.data).replace(b"\r\n", b"\n").partition(b"\n\n")
    first, *lines = head.decode().splitlines()
    words = first.split()
    if len(words) < 2:
        raise invalid("Failed to parse batch request.")
    address = urlsplit(words[1])
    target = address.path + (f"?{address.query}" if address.query else "")
    headers = dict(line.split(": ", 1) for line in lines if ": " in line)
    return Call(words[0], target, headers, _once(body.rstrip(b"\n")))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
