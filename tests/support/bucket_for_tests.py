"""One bucket of the GCS that tests run against, as a test handles it: requests about it fail, are late, are told."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from typing import Any

AT_ONCE = 10_000


class BucketForTests:
    """Faults strike requests about this bucket alone. `match` must be in a request's address or its object's name."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self.name = url, name
        self.prefix = f"gs://{name}/prefix"

    @classmethod
    def create(cls, url: str, name: str, location: str = "US") -> BucketForTests:
        bucket = cls(url, name)
        bucket._post("/storage/v1/b?project=test", {"name": name, "location": location})
        return bucket

    def fail(self, *, method: str = "", match: str = "", status: int = 503, after: bool = False, **more: Any) -> None:
        """Answer with an error, before a request has its effect or `after` it.

        More, here and below: `times` (1; None is for good), and `probability` with its `seed`.
        """
        self._arm(method=method, match=match, status=status, after=after, **more)

    def drop(self, *, method: str = "", match: str = "", after: bool = False, **more: Any) -> None:
        """Close the connection without an answer."""
        self._arm(method=method, match=match, drop=True, after=after, **more)

    def delay(self, delay_s: float, *, method: str = "", match: str = "", after: bool = False, **more: Any) -> None:
        """Let a request wait before it has its effect, or its answer after it."""
        self._arm(method=method, match=match, delay_s=delay_s, after=after, **more)

    def calm(self) -> None:
        """Nothing fails any more."""
        self._post("/_calm", {"bucket": self.name})

    def strikes_left(self) -> int:
        """How many times armed faults have still to strike."""
        return int(self._post("/_left", {"bucket": self.name}))

    def requests(self) -> list[str]:
        """The newest 100,000: "METHOD address", decoded, and after it the object's name where only the body has it."""
        return list(self._post("/_requests", {"bucket": self.name}))

    def requests_made(self) -> int:
        """How many so far, of all."""
        return int(self._post("/_made", {"bucket": self.name}))

    def requests_with_credentials(self) -> int:
        """The number of requests so far with a header Authorization."""
        return int(self._post("/_with_credentials", {"bucket": self.name}))

    def listings(self) -> list[str]:
        """Those of them that list."""
        listed = f"GET /storage/v1/b/{self.name}/o"
        return [line for line in self.requests() if line == listed or line.startswith(f"{listed}?")]

    def fill(self, names: Sequence[str]) -> None:
        """Create empty objects of these names below the prefix, many with one request."""
        for start in range(0, len(names), AT_ONCE):
            some = [f"prefix/{name}" for name in names[start : start + AT_ONCE]]
            self._post("/_fill", {"bucket": self.name, "names": some})

    def change(self, **fields: Any) -> None:
        """Set fields of the bucket's resource, as its owner may."""
        self._post(f"/storage/v1/b/{self.name}", fields, method="PATCH")

    def forget(self) -> None:
        """Remove the bucket with all that is in it."""
        self._post("/_forget", {"bucket": self.name})

    def _arm(self, **fields: Any) -> None:
        self._post("/_fault", {"bucket": self.name, **fields})

    def _post(self, path: str, body: dict[str, Any], method: str = "POST") -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())
