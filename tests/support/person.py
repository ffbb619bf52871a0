"""Somebody at Dagster's GraphQL, straight or through a login."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from dagster_dev import BACKFILL, LAUNCH
from requests.adapters import HTTPAdapter

CONSENT = {"prompt": "consent"}
TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) {
  __typename ... on TerminateRunFailure { message } ... on PythonError { message } } }"""
PARTITIONS = """mutation($name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: {repositoryLocationName: "marin", repositoryName: "__repository__"},
    partitionsDefName: $name, partitionKey: $key) { __typename } }"""
RUN = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status tags { key value } } } }"


class Person:
    """Somebody with a browser's cookies; without a login at first."""

    def __init__(self, url: str, *, trusts: bool = False) -> None:
        """`trusts`: take any certificate."""
        self.url, self._session = url, requests.Session()
        self._session.trust_env = False  # never through HTTP_PROXY
        self._session.verify = not trusts
        if (urlsplit(url).hostname or "").endswith(".localhost"):
            self._session.mount(url, _Loopback())

    def log_in(self, name: str) -> requests.Response:
        """Follow the login's forms, as a browser does. Return the page that was asked for."""
        page = self._session.get(self.url, headers={"Accept": "text/html"})
        given = {"prompt": "login", "login": name, "password": "any"}
        for fields in (given, CONSENT):
            form = re.search(r'<form[^>]* action="([^"]+)"', page.text)
            assert form, page.text
            page = self._session.post(urljoin(page.url, form[1]), fields, headers={"Accept": "text/html"})
        return page

    def get(self, path: str, **headers: str) -> requests.Response:
        return self._session.get(f"{self.url}{path}", headers=headers, allow_redirects=False)

    def post(self, path: str, body: Mapping[str, Any], **headers: str) -> requests.Response:
        return self._session.post(f"{self.url}{path}", json=body, headers=headers, allow_redirects=False)

    def ask(self, query: str, *, headers: Mapping[str, str] | None = None, **variables: Any) -> dict[str, Any]:
        answer = self.post("/graphql", {"query": query, "variables": variables}, **(headers or {}))
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return answer.json()["data"]

    def launch(
        self,
        job: str,
        *,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        location: str = "marin",
    ) -> dict[str, Any]:
        """Ask for a run of a job, as the UI does; GraphQL's answer."""
        return self.ask(LAUNCH, headers=headers, p=launch_of(job, tags or {}, location))["launchRun"]

    def backfill(self, *assets: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        selection = [{"path": asset.split("/")} for asset in assets]
        params = {"assetSelection": selection, "allPartitions": True}
        return self.ask(BACKFILL, headers=headers, p=params)["launchPartitionBackfill"]

    def run(self, run_id: str) -> tuple[str, dict[str, str]]:
        """Status and tags of a run."""
        run = self.ask(RUN, id=run_id)["runOrError"]
        return run["status"], {tag["key"]: tag["value"] for tag in run["tags"]}

    def cookie(self, name: str) -> str:
        return self._session.cookies.get(name) or ""

    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._session.cookies)


class _Loopback(HTTPAdapter):
    """Connects to 127.0.0.1 for a name below `localhost`, as browsers do, which ask no server for such a name."""

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        sent, name = request.copy(), urlsplit(request.url).netloc
        sent.url = request.url.replace(name, f"127.0.0.1:{urlsplit(request.url).port}", 1)
        sent.headers["Host"] = name
        answer = super().send(sent, *arguments, **options)
        answer.url, answer.request = request.url, request
        return answer


def launch_of(job: str, tags: Mapping[str, str], location: str = "marin") -> dict[str, Any]:
    """The parameters of LAUNCH."""
    selector = {"repositoryName": "__repository__", "repositoryLocationName": location, "jobName": job}
    given = [{"key": key, "value": value} for key, value in tags.items()]
    return {"selector": selector, "mode": "default", "runConfigData": {}, "executionMetadata": {"tags": given}}


def said(answer: requests.Response) -> str:
    """For a failure's message."""
    return f"{answer.status_code} {json.dumps(dict(answer.headers))} {answer.text[:300]}"
