"""The whole deployment on loopback, as `make deploy-local` brings it up, and people who log in to it."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import dagster as dg
import psutil
import pytest
import requests
from dagster_dev import BACKFILL, LAUNCH
from running import wait_until

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy/local"))

pytest.importorskip("supervisor", reason="the group `rehearsal` is not installed: make rehearsal")

from local_deployment import lifecycle
from local_deployment.layout import Layout
from local_deployment.tools import APACHE, OPENIDC

from marin_resources.ray_tpu.cluster.local.head import free_ports

CONSENT = {"prompt": "consent"}
TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) {
  __typename ... on TerminateRunFailure { message } ... on PythonError { message } } }"""
PARTITIONS = """mutation($name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: {repositoryLocationName: "marin", repositoryName: "__repository__"},
    partitionsDefName: $name, partitionKey: $key) { __typename } }"""
RUN = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status tags { key value } } } }"


class Person:
    """Somebody with a browser's cookies; without a login at first."""

    def __init__(self, url: str) -> None:
        self.url, self._session = url, requests.Session()
        self._session.trust_env = False  # never through HTTP_PROXY

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
        self, job: str, *, tags: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Ask for a run of a job, as the UI does; GraphQL's answer."""
        selector = {"repositoryName": "__repository__", "repositoryLocationName": "marin", "jobName": job}
        given = [{"key": key, "value": value} for key, value in (tags or {}).items()]
        params = {"selector": selector, "mode": "default", "runConfigData": {}, "executionMetadata": {"tags": given}}
        return self.ask(LAUNCH, headers=headers, p=params)["launchRun"]

    def backfill(self, *assets: str) -> dict[str, Any]:
        selection = [{"path": asset.split("/")} for asset in assets]
        return self.ask(BACKFILL, p={"assetSelection": selection, "allPartitions": True})["launchPartitionBackfill"]

    def run(self, run_id: str) -> tuple[str, dict[str, str]]:
        """Status and tags of a run."""
        run = self.ask(RUN, id=run_id)["runOrError"]
        return run["status"], {tag["key"]: tag["value"] for tag in run["tags"]}

    def cookie(self, name: str) -> str:
        return self._session.cookies.get(name) or ""

    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._session.cookies)


class Rehearsal:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def person(self, name: str | None = None) -> Person:
        """Before the proxy; logged in if named."""
        person = Person(self.layout.url)
        if name is not None:
            person.log_in(name)
        return person

    def beside_the_proxy(self, webserver: str = "webserver") -> Person:
        """Who reaches a webserver itself."""
        return Person(f"http://127.0.0.1:{self.layout.ports[webserver]}")

    def supervisor(self, *arguments: str) -> str:
        return lifecycle.supervisorctl(self.layout, *arguments)

    def pid(self, service: str) -> int:
        return int(self.supervisor("pid", service))

    def processes(self) -> list[psutil.Process]:
        """All that belong to the deployment, with runs and the jobs on its cluster."""
        return lifecycle.processes_of(self.layout)

    def await_all(self, timeout_s: float = 120) -> None:
        wait_until(lambda: not lifecycle.silent(self.layout), "all services answer", timeout_s=timeout_s)

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Dagster's, as the services see it."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.layout.environment().items():
                patch.setenv(name, value)
            with dg.DagsterInstance.from_config(str(self.layout.home / "dagster")) as instance:
                yield instance


@contextmanager
def rehearsal() -> Iterator[Rehearsal]:
    """All of it up, in a folder of its own; removed with the block."""
    if not (APACHE.exists() and OPENIDC.exists()) and os.geteuid() != 0:
        pytest.skip("Apache with mod_auth_openidc is not installed, and only root can install it.")
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        home = Path(folder) / "deployment"
        try:
            yield Rehearsal(lifecycle.up(home, free_ports(1)[0]))
        finally:
            lifecycle.down(home)


def said(answer: requests.Response) -> str:
    """For a failure's message."""
    return f"{answer.status_code} {json.dumps(dict(answer.headers))} {answer.text[:300]}"
