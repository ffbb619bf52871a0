"""`marin-webserver`: `dagster-webserver` with its options, for use behind a login; and `dagster dev` with it.

A backfill gets the tag of the user who launched it (`run_attribution.py`). A launch waits for a code server that is
away (`code_server_wait.py`). Pages of outputs are served (`output_pages.py`). Dagster (1.13.27) has no setting for
them, nor for the webserver of `dagster dev`; the issues are named there (dagster-io/dagster#20522,
dagster-io/dagster#14605).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dagster._cli import dev as dagster_dev
from dagster._grpc import server_watcher
from dagster._grpc.client import DagsterGrpcClient
from dagster_webserver import cli
from dagster_webserver.webserver import DagsterWebserver

from marin_resources.dagster_fixes.code_server_wait import keep_what_is_loaded, wait_for_code_server
from marin_resources.dagster_fixes.output_pages import route
from marin_resources.dagster_fixes.run_attribution import UserProcessContext

DAGSTERS = "dagster_webserver"


def main() -> None:
    cli.WorkspaceProcessContext = UserProcessContext  # type: ignore[misc]
    wait_for_code_server(DagsterGrpcClient)
    keep_what_is_loaded(server_watcher)
    serve_outputs()
    cli.main()


def serve_outputs() -> None:
    """Add the route of outputs to Dagster's webserver, in this process."""
    build = DagsterWebserver.build_routes

    def build_with_outputs(self: DagsterWebserver) -> list[Any]:
        return [route(), *build(self)]

    DagsterWebserver.build_routes = build_with_outputs  # type: ignore[method-assign]


def dev() -> None:
    """Run `dagster dev` with the options of this process; its webserver is this one."""
    start = dagster_dev.open_ipc_subprocess

    def start_ours(parts: Sequence[str], **options: Any) -> Any:
        return start([__name__ if word == DAGSTERS else word for word in parts], **options)

    dagster_dev.open_ipc_subprocess = start_ours  # type: ignore[assignment]
    dagster_dev.dev_command(prog_name="dagster dev")


if __name__ == "__main__":
    main()
