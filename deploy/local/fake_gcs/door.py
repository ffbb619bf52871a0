"""The door for tests: faults are armed and cleared, requests are listed, a bucket is filled, or forgotten."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from typing import Any

from fake_gcs.checksums import checksums_of
from fake_gcs.faults import Faults
from fake_gcs.routes import Api

MOST_REQUESTS = 100_000
"""Limit of the requests that are kept for a bucket; all are counted."""


class Door:
    def __init__(self, api: Api) -> None:
        self.faults = Faults()
        self._requests: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=MOST_REQUESTS))
        """Bucket -> the method, the address and the object's name of each request."""
        self._made: Counter[str] = Counter()
        self._api = api

    def note(self, bucket: str, request: str) -> None:
        self._requests[bucket].append(request)
        self._made[bucket] += 1

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
