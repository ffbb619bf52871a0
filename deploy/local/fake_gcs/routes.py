"""The handler of each request: the paths of the JSON API.

A name in a path is percent-encoded, so a slash in it does not divide the path, and a name stands at known places.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from fake_gcs import buckets, copies, listing, single, uploads
from fake_gcs.batch import answer_batch
from fake_gcs.call import Answer, Call
from fake_gcs.objects import Store
from fake_gcs.refusals import invalid, not_implemented
from fake_gcs.resumable import Sessions

ROUTES: dict[tuple[str, str], Callable[..., Awaitable[Answer]]] = {
    ("GET", "b"): buckets.list_buckets,
    ("POST", "b"): buckets.create_bucket,
    ("GET", "b/*"): buckets.get_bucket,
    ("PATCH", "b/*"): buckets.patch_bucket,
    ("DELETE", "b/*"): buckets.delete_bucket,
    ("GET", "b/*/o"): listing.list_objects,
    ("GET", "b/*/o/*"): single.get_object,
    ("PATCH", "b/*/o/*"): single.patch_object,
    ("PUT", "b/*/o/*"): single.update_object,
    ("DELETE", "b/*/o/*"): single.delete_object,
    ("POST", "b/*/o/*/compose"): copies.compose_object,
    ("POST", "b/*/o/*/copyTo/b/*/o/*"): copies.copy_object,
    ("POST", "b/*/o/*/rewriteTo/b/*/o/*"): copies.rewrite_object,
    ("POST", "b/*/o/*/moveTo/o/*"): copies.move_object,
}
NAMES_AT = (1, 3, 6, 8)
"""Places of names in a path that is split at its slashes."""


class Api:
    """All that the server knows to do."""

    def __init__(self, origin: str = "") -> None:
        self.store = Store(origin)
        self.sessions = Sessions(self.store)

    async def answer(self, call: Call) -> Answer:
        """Raises RefusalError."""
        if call.path == "/batch/storage/v1":
            return await answer_batch(call, self.answer)
        kind, shape, names = place_of(call)
        self._require_payer(call, shape, names)
        if kind == "upload":
            return await self._upload(call, names[0])
        handler = ROUTES.get((call.method, shape))
        if handler is None:
            raise not_implemented(f"{call.method} {call.path!r}")
        return await handler(self.store, call, *names)

    def _require_payer(self, call: Call, shape: str, names: list[str]) -> None:
        """Raise RefusalError for a bucket whose requester pays, if no project is named.

        The owner, who needs none, is whoever changes or deletes the bucket itself.
        """
        if shape == "b/*" and call.method in ("PATCH", "DELETE"):
            return
        for bucket in (names[:1], names[2:3] if "To/b/" in shape else []):
            buckets.require_payer(self.store, call, *bucket)

    async def _upload(self, call: Call, bucket: str) -> Answer:
        kind = call.query.get("uploadType", "")
        if "upload_id" in call.query:
            return self.sessions.cancel(call) if call.method == "DELETE" else await self.sessions.receive(call)
        if kind == "resumable":
            return await self.sessions.begin(call, bucket)
        if kind not in ("media", "multipart"):
            raise invalid(f"Invalid upload type: '{kind}'.", location="uploadType")
        upload: Any = uploads.upload_media if kind == "media" else uploads.upload_multipart
        return await upload(self.store, call, bucket)


def place_of(call: Call) -> tuple[str, str, list[str]]:
    """The kind of a path (upload, download or plain), its shape, and the names in it."""
    kind, separator, rest = call.path.partition("/storage/v1/")
    if not separator or kind not in ("", "/upload", "/download"):
        raise not_implemented(f"{call.method} {call.path!r}")
    parts = rest.strip("/").split("/")
    names = [unquote(parts[at]) for at in NAMES_AT if at < len(parts)]
    shape = "/".join("*" if at in NAMES_AT else part for at, part in enumerate(parts))
    if kind == "/upload" and shape != "b/*/o":
        raise not_implemented(f"{call.method} {call.path!r}")
    return kind.strip("/"), shape, names
