"""The GCS of deploy/local for tests: `python -m gcs_with_faults FD` serves on a bound socket that was inherited, until
standard input ends. Prints "ready" once it listens.

Its door, at paths that begin with "/_", arms and clears faults, lists requests, and fills or forgets a bucket. Faults
are answers that are errors, that are late, or that never come: before the effect of a request, so that it has none, or
after it, so that the client cannot know that it has one.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from fake_gcs.call import Answer, Call
from fake_gcs.checksums import checksums_of
from fake_gcs.refusals import RefusalError
from fake_gcs.routes import Api, place_of
from fake_gcs.server import Server
from fake_gcs.uploads import multipart_of

MOST_REQUESTS = 100_000
"""Limit of the requests that are kept for a bucket; all are counted."""


@dataclass(kw_only=True)
class Fault:
    bucket: str
    """Requests about this bucket alone, so that tests do not hurt each other."""
    method: str = ""
    """Empty: any."""
    match: str = ""
    """Must be in the request's address (decoded) or in the name of the object that it is about."""
    status: int | None = None
    """The answer; None: the connection is dropped, unless the fault has only a delay."""
    after: bool = False
    """After the effect."""
    delay_s: float = 0.0
    """The time to wait first. With neither a status nor `drop`, this is all that happens."""
    drop: bool = False
    times: int | None = 1
    """The number of requests that it strikes; None: all, until `calm`."""
    probability: float = 1.0
    seed: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def strikes(self, method: str, bucket: str, subject: str) -> bool:
        """Whether it is this request's turn; counts."""
        if self.times == 0 or bucket != self.bucket or self.method not in ("", method) or self.match not in subject:
            return False
        if self.probability < 1.0 and self.chance.random() >= self.probability:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """Those that are armed, first armed first."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []

    def arm(self, fields: dict[str, Any]) -> None:
        self._armed.append(Fault(**fields))

    def calm(self, bucket: str) -> None:
        self._armed = [fault for fault in self._armed if fault.bucket != bucket]

    def left(self, bucket: str) -> int:
        """The number of strikes still to come; faults without a number do not count."""
        return sum(fault.times or 0 for fault in self._armed if fault.bucket == bucket)

    def of(self, method: str, bucket: str, subject: str) -> Fault | None:
        if not self._armed:
            return None
        return next((fault for fault in self._armed if fault.strikes(method, bucket, subject)), None)


class DroppedError(Exception):
    """The connection is to be closed without an answer."""


class Door:
    def __init__(self, api: Api) -> None:
        self.faults = Faults()
        self._requests: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=MOST_REQUESTS))
        """Bucket -> the method, the address and the object's name of each request."""
        self._made: Counter[str] = Counter()
        self._with_credentials: Counter[str] = Counter()
        self._api = api

    def note(self, bucket: str, request: str, *, with_credentials: bool) -> None:
        self._requests[bucket].append(request)
        self._made[bucket] += 1
        self._with_credentials[bucket] += with_credentials

    def answer(self, path: str, body: bytes) -> bytes:
        request: dict[str, Any] = json.loads(body)
        if path == "/_fault":
            self.faults.arm(request)
        elif path == "/_calm":
            self.faults.calm(request["bucket"])
        elif path == "/_left":
            return json.dumps(self.faults.left(request["bucket"])).encode()
        elif path == "/_requests":
            return json.dumps(list(self._requests[request["bucket"]])).encode()
        elif path == "/_made":
            return json.dumps(self._made[request["bucket"]]).encode()
        elif path == "/_with_credentials":
            return json.dumps(self._with_credentials[request["bucket"]]).encode()
        elif path == "/_fill":
            for name in request["names"]:
                self._api.store.create(request["bucket"], name, b"", checksums_of(b""), {})
        elif path == "/_forget":
            self._forget(request["bucket"])
        else:
            raise ValueError(f"There is no door {path!r}.")
        return b"null"

    def _forget(self, bucket: str) -> None:
        self.faults.calm(bucket)
        self._api.store.buckets.pop(bucket, None)
        self._api.sessions.forget(bucket)
        self._requests.pop(bucket, None)
        self._made.pop(bucket, None)
        self._with_credentials.pop(bucket, None)


class ServerWithFaults(Server):
    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self._door = Door(self.api)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/_"):
            return web.Response(body=self._door.answer(request.path, await request.read()))
        try:
            return await super().handle(request)
        except DroppedError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()

    async def answer(self, call: Call) -> Answer:
        bucket, subject = await self._subject(call)
        self._door.note(bucket, f"{call.method} {subject}", with_credentials="Authorization" in call.headers)
        fault = self._door.faults.of(call.method, bucket, subject)
        if fault is None:
            return await super().answer(call)
        if not fault.after:
            await _strike(fault)
        answer = await super().answer(call)
        if fault.after:
            await _strike(fault)
        return answer

    async def _subject(self, call: Call) -> tuple[str, str]:
        """The bucket that a request is about, and its address with the object's name, which may be in the body."""
        subject = unquote(call.target)
        try:
            kind, _, names = place_of(call)
            bucket = names[0] if names else ""
            return bucket, f"{subject} {await _name_in_body(call) if kind == 'upload' else ''}".rstrip()
        except RefusalError:
            return "", subject


async def _name_in_body(call: Call) -> str:
    if call.query.get("uploadType") == "multipart":
        return str((await multipart_of(call))[0].get("name", ""))
    if call.query.get("uploadType") == "resumable" and "upload_id" not in call.query:
        return str((await call.read_json()).get("name", ""))
    return ""


async def _strike(fault: Fault) -> None:
    await asyncio.sleep(fault.delay_s)
    if fault.drop:
        raise DroppedError
    if fault.status is not None:
        raise _refusal(fault.status)


def _refusal(status: int) -> RefusalError:
    """The answer of a fault on purpose."""
    if status == 429:
        return RefusalError(429, "rateLimitExceeded", "The object exceeded the rate limit for object mutations.")
    if status == 403:
        message = "the-account does not have storage.objects.create access to the Google Cloud Storage object."
        return RefusalError(403, "forbidden", message)
    return RefusalError(status, "backendError", "We encountered an internal error. Please try again.")


async def _serve(bound: socket.socket) -> None:
    host, port = bound.getsockname()
    await ServerWithFaults(f"http://{host}:{port}").listen(bound)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
