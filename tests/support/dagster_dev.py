"""A real `dagster dev`, and its GraphQL as the UI uses it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from running import wait_until

LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""


BACKFILL = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""


class DagsterDev:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["data"]

    def is_up(self) -> bool:
        try:
            return bool(
                self.ask("{ repositoriesOrError { __typename ... on RepositoryConnection { nodes { name } } } }")
            )
        except (urllib.error.URLError, ConnectionError):
            return False

    def launch(self, *assets: str) -> str:
        """Materialize assets, as the UI's button does; the run's id."""
        selector = {
            "repositoryLocationName": "marin",
            "repositoryName": "__repository__",
            "jobName": "__ASSET_JOB",
            "assetSelection": [{"path": asset.split("/")} for asset in assets],
        }
        answer = self.ask(LAUNCH, p={"selector": selector, "mode": "default", "runConfigData": {}})["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return answer["run"]["runId"]

    def status(self, run_id: str) -> str:
        query = "query($r: ID!) { runOrError(runId: $r) { ... on Run { status } } }"
        return self.ask(query, r=run_id)["runOrError"]["status"]

    def statuses_of_retries(self, run_id: str) -> list[str]:
        """The status of each run that the daemon has launched in place of this one."""
        query = "query($f: RunsFilter!) { runsOrError(filter: $f) { ... on Runs { results { status } } } }"
        found = self.ask(query, f={"tags": [{"key": "dagster/parent_run_id", "value": run_id}]})
        return [run["status"] for run in found["runsOrError"]["results"]]

    def messages(self, run_id: str) -> list[str]:
        query = """query($r: ID!) { logsForRun(runId: $r) { ... on EventConnection { events {
            ... on MessageEvent { message } } } } }"""
        return [event["message"] for event in self.ask(query, r=run_id)["logsForRun"]["events"] if event]

    def unsynced(self) -> dict[str, str]:
        """Asset -> FRESH, STALE or MISSING, as the UI shows it."""
        nodes = self.ask("{ assetNodes { assetKey { path } staleStatus } }")["assetNodes"]
        return {"/".join(node["assetKey"]["path"]): node["staleStatus"] for node in nodes}

    def backfill(self, asset: str, keys: Sequence[str]) -> str:
        """Request a backfill, as the UI's dialogue does; its id."""
        answer = self.ask(BACKFILL, p={"assetSelection": [{"path": asset.split("/")}], "partitionNames": list(keys)})
        launched = answer["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return launched["backfillId"]

    def backfill_status(self, backfill_id: str) -> str:
        query = (
            "query($b: String!) { partitionBackfillOrError(backfillId: $b) { ... on PartitionBackfill { status } } }"
        )
        return self.ask(query, b=backfill_id)["partitionBackfillOrError"]["status"]

    def partitions(self, asset: str) -> dict[str, int]:
        """How many partitions are materialized and failed, as the bar on the asset's page shows."""
        query = """query($a: AssetKeyInput!) { assetNodeOrError(assetKey: $a) { ... on AssetNode {
            partitionStats { numMaterialized numFailed } } } }"""
        found = self.ask(query, a={"path": asset.split("/")})["assetNodeOrError"]["partitionStats"]
        return {"materialized": found["numMaterialized"], "failed": found["numFailed"]}

    def terminate(self, run_id: str) -> None:
        answer = self.ask("mutation($r: String!) { terminateRun(runId: $r) { __typename } }", r=run_id)
        assert answer["terminateRun"]["__typename"] == "TerminateRunSuccess", answer


@contextmanager
def dagster_dev(workspace: Path, log: Path, env: dict[str, str]) -> Iterator[DagsterDev]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("dagster")), "dev", "-w", str(workspace), "-p", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            env={**os.environ, **env},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        dev = DagsterDev(port)
        wait_until(lambda: process.poll() is not None or dev.is_up(), "dagster dev", timeout_s=120)
        assert process.poll() is None, log.read_text()
        yield dev
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
