"""`marin-webserver`: `dagster-webserver` with its options, for use behind a login.

A backfill gets the tag of the user who launched it (`run_attribution.py`), and a launch waits for a code server that is
away (`code_server_wait.py`). Dagster (1.13.27) has no setting for them; the issues are named there
(dagster-io/dagster#20522, dagster-io/dagster#14605).
"""

from __future__ import annotations

from dagster._grpc import server_watcher
from dagster._grpc.client import DagsterGrpcClient
from dagster_webserver import cli

from marin_resources.dagster_fixes.code_server_wait import keep_what_is_loaded, wait_for_code_server
from marin_resources.dagster_fixes.run_attribution import UserProcessContext


def main() -> None:
    cli.WorkspaceProcessContext = UserProcessContext  # type: ignore[misc]
    wait_for_code_server(DagsterGrpcClient)
    keep_what_is_loaded(server_watcher)
    cli.main()


if __name__ == "__main__":
    main()
