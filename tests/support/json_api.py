"""The JSON API of GCS in plain requests: what a status and a body are, no client's retries and translations between."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import object_stores
import requests
from requests import Response

PUBLIC_URL = "https://storage.googleapis.com"


class JsonApi:
    """One bucket; names of objects are below a folder of its own."""

    def __init__(self, prefix: str) -> None:
        self.bucket, _, self.folder = prefix.removeprefix("gs://").partition("/")
        self.url = PUBLIC_URL if object_stores.REAL_GCS_PREFIX else object_stores.GCS_URL
        self._session = _session()

    def send(self, method: str, path: str, **more: Any) -> Response:
        return self._session.request(method, f"{self.url}{path}", timeout=60, **more)

    def objects(self, **query: Any) -> Response:
        return self.send("GET", f"/storage/v1/b/{self.bucket}/o", params={"prefix": f"{self.folder}/", **query})

    def write(self, name: str, data: bytes, headers: dict[str, str] | None = None, **query: Any) -> Response:
        params = {"uploadType": "media", "name": self.full(name), **query}
        return self.send("POST", f"/upload/storage/v1/b/{self.bucket}/o", params=params, data=data, headers=headers)

    def read(self, name: str, span: str = "", **query: Any) -> Response:
        headers = {"Range": f"bytes={span}"} if span else {}
        return self.send("GET", self.path(name), params={"alt": "media", **query}, headers=headers)

    def look(self, name: str, **query: Any) -> Response:
        return self.send("GET", self.path(name), params=query)

    def patch(self, name: str, fields: dict[str, Any], **query: Any) -> Response:
        return self.send("PATCH", self.path(name), params=query, json=fields)

    def delete(self, name: str, **query: Any) -> Response:
        return self.send("DELETE", self.path(name), params=query)

    def rewrite(self, name: str, to_name: str, **query: Any) -> Response:
        target = f"rewriteTo/b/{self.bucket}/o/{quote(self.full(to_name), safe='')}"
        return self.send("POST", f"{self.path(name)}/{target}", params=query)

    def compose(self, name: str, sources: list[dict[str, Any]], **query: Any) -> Response:
        named = [{**source, "name": self.full(source["name"])} for source in sources]
        return self.send("POST", f"{self.path(name)}/compose", params=query, json={"sourceObjects": named})

    def begin(self, name: str, fields: dict[str, Any] | None = None, **query: Any) -> Response:
        params = {"uploadType": "resumable", "name": self.full(name), **query}
        return self.send("POST", f"/upload/storage/v1/b/{self.bucket}/o", params=params, json=fields or {})

    def chunk(self, session: str, span: str, data: bytes = b"", headers: dict[str, str] | None = None) -> Response:
        """`span` as in "0-9/20", "*/20" or "*/*"."""
        headers = {"Content-Range": f"bytes {span}", **(headers or {})}
        return self._session.put(session, data=data, headers=headers, timeout=60, allow_redirects=False)

    def cancel(self, session: str) -> Response:
        return self._session.delete(session, timeout=60)

    def full(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def path(self, name: str) -> str:
        return f"/storage/v1/b/{self.bucket}/o/{quote(self.full(name), safe='')}"


def reason(answer: Response) -> str:
    """Why GCS said no."""
    return str(json.loads(answer.text)["error"]["errors"][0]["reason"])


def _session() -> requests.Session:
    if not object_stores.REAL_GCS_PREFIX:
        return requests.Session()
    import google.auth
    from google.auth.transport.requests import AuthorizedSession

    return AuthorizedSession(google.auth.default(["https://www.googleapis.com/auth/devstorage.read_write"])[0])
