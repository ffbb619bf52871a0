"""Who launched what: the tag `marin/user` of runs and backfills that were launched in the UI.

Dagster's webserver has no login. The proxy before it has one, and says in the header X-Marin-User who asks; it removes
what a client has sent under that name. What a request's user launches gets the tag, whatever tags the request has.
Without the header, as on a laptop, tags stay as they are. What a schedule, a sensor or the daemon launches has no user;
the runs of a backfill have that of the backfill, and a retry has that of the run.
"""

from __future__ import annotations

from typing import Any

from dagster import DagsterRun
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext

HEADER, TAG = "X-Marin-User", "marin/user"


class UserRunCoordinator(QueuedRunCoordinator):
    """Dagster's queue of runs. A run gets the user of the request that launched it."""

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        user = context.get_request_header(HEADER)
        if user:
            self._instance.add_run_tags(context.dagster_run.run_id, {TAG: user})
        return super().submit_run(context)


class UserRequestContext(WorkspaceRequestContext):
    """The webserver's view of one request. A backfill gets the request's user."""

    def get_viewer_tags(self) -> dict[str, str]:
        user = getattr(self.source, "headers", {}).get(HEADER)
        return {TAG: user} if user else {}


class UserProcessContext(WorkspaceProcessContext):
    """The webserver's workspace."""

    def create_request_context(self, source: Any = None) -> UserRequestContext:
        return UserRequestContext(
            instance=self.instance,
            current_workspace=self.get_current_workspace(),
            process_context=self,
            version=self.version,
            source=source,
            read_only=self._read_only,
        )
