"""`marin-webserver`: `dagster-webserver` with its options, for use behind a login.

A backfill gets the tag of the user who launched it (`users.py`), and each of the UI's questions is parsed once
(`known_queries.py`). Dagster has no setting for either.
"""

from __future__ import annotations

from dagster_webserver import cli, graphql

from marin_resources.orchestrator.known_queries import keep_known_queries
from marin_resources.orchestrator.users import UserProcessContext


def main() -> None:
    cli.WorkspaceProcessContext = UserProcessContext  # type: ignore[misc]
    keep_known_queries(graphql)
    cli.main()


if __name__ == "__main__":
    main()
