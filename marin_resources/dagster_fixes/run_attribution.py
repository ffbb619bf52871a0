"""Users of runs and backfills that were launched in the UI: the tag `marin/user`.

Dagster's webserver has no login. The proxy before it has one, and names the requester in the header X-Marin-User; it
removes a header of that name that a client has sent. A run that a request's user launches gets the tag, whatever tags
the request has. A run of a schedule, a sensor or the daemon has no user; the runs of a backfill have that of the
backfill, and a retry has that of the run.

With `requires_user`, as behind the proxy, a request without the header changes nothing: `marin-webserver` gives it the
permissions of a reader, and the queue refuses its runs. Otherwise, as on a laptop, it may do all, and tags stay as they
are.

Seen with Dagster 1.13.27: dagster-io/dagster#20522. Without this, nobody knows who launched a backfill.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dagster import (
    BoolSource,
    DagsterInstance,
    DagsterInvariantViolationError,
    DagsterRun,
    Field,
    QueuedRunCoordinator,
    SubmitRunContext,
)
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext

HEADER, TAG = "X-Marin-User", "marin/user"
SETTING = "requires_user"


class AttributingRunCoordinator(QueuedRunCoordinator):
    """Dagster's queue of runs. A run gets the user of the request that launched it."""

    requires_user = False
    """Whether a request without a user changes nothing."""

    @classmethod
    def config_type(cls) -> Any:
        of_dagster = cast(Mapping[str, Any], super().config_type())
        return {**of_dagster, SETTING: Field(BoolSource, default_value=False)}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> AttributingRunCoordinator:
        of_dagster = {name: value for name, value in config_value.items() if name != SETTING}
        coordinator = super().from_config_value(inst_data, of_dagster)
        coordinator.requires_user = config_value[SETTING]
        return coordinator

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        source = getattr(context.workspace, "source", None)
        user = _user(source)
        if self.requires_user and source is not None and user is None:
            raise DagsterInvariantViolationError(
                f"The request that launches this run has no header {HEADER!r}, which the proxy with the login sets. "
                f"Launch it through the proxy; or, if no login is in front, remove `{SETTING}` from dagster.yaml."
            )
        if user is not None:
            self._instance.add_run_tags(context.dagster_run.run_id, {TAG: user})
        return super().submit_run(context)


class UserRequestContext(WorkspaceRequestContext):
    """The webserver's view of one request. A backfill gets the request's user."""

    def get_viewer_tags(self) -> dict[str, str]:
        user = _user(self.source)
        return {} if user is None else {TAG: user}


class UserProcessContext(WorkspaceProcessContext):
    """The webserver's workspace."""

    def create_request_context(self, source: Any = None) -> UserRequestContext:
        of_nobody = source is not None and _user(source) is None
        return UserRequestContext(
            instance=self.instance,
            current_workspace=self.get_current_workspace(),
            process_context=self,
            version=self.version,
            source=source,
            read_only=self._read_only or (of_nobody and _requires_user(self.instance)),
        )


def _user(source: Any) -> str | None:
    """The user of the request, by the proxy's header; None without a proxy, a name, or a request."""
    return getattr(source, "headers", {}).get(HEADER) or None


def _requires_user(instance: DagsterInstance) -> bool:
    return getattr(instance.run_coordinator, SETTING, False)
