"""`marin-webserver`: `dagster-webserver` with its options, for use behind a login.

A backfill gets the tag of the user who launched it (`users.py`). Dagster has no setting for that.
"""

from __future__ import annotations

from dagster_webserver import cli

from marin_resources.orchestrator.users import UserProcessContext


def main() -> None:
    cli.WorkspaceProcessContext = UserProcessContext  # type: ignore[misc]
    cli.main()


if __name__ == "__main__":
    main()
