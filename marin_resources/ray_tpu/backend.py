"""The seam between a step and whatever computes it: submit a task, wait for its outcome, stop it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from marin_resources.output import Holder
from marin_resources.wire.outcome import Outcome
from marin_resources.wire.task import Task


class Handle(Protocol):
    """A task that was given to a back end."""

    @property
    def job(self) -> str | None:
        """The id of its job on a cluster; None if it is none."""

    def describe(self) -> str:
        """Where it runs, as a phrase: "as job … on …", or nothing if that goes without saying."""


H = TypeVar("H", bound=Handle)


class Backend(Protocol[H]):
    """Where tasks run. The same task submitted twice is the same handle."""

    async def attempt_for(self, path: str) -> int:
        """The number of the attempt to make at the output at `path`: a new one, or that of a task that has yet to
        begin."""

    async def attach(self, path: str, holder: Holder) -> H | None:
        """The handle of the task that holds the lease of the output at `path`, if it is one of this back end's."""

    def check(self, task: Task) -> None:
        """Raise MissingRequirementError if what the task needs of its environment is known not to be there."""

    async def submit(self, task: Task, on_job: Callable[[str], None] = lambda job: None) -> H:
        """Start the task or join it; return a handle. Raise UnmeetableError at once if no node can ever run it.

        On a cluster, `on_job` is called with the id of a new job before the job is submitted. It may block.
        """

    async def wait(self, handle: H, on_log: Callable[[str], None]) -> Outcome:
        """The task's outcome; `on_log` is given each line that it prints, as it is printed."""

    async def detach(self, handle: H, *, force: bool) -> str | None:
        """Detach from the task. Return a message if it keeps running, None if the caller must stop it.

        It keeps running if another run waits for it or, where tasks outlive this process, with `force`.
        """

    async def stop(self, handle: H, reason: str) -> None:
        """End the task and all that it started; returns when its worker is gone."""

    def shutdown(self) -> None:
        """This process needs it no longer."""
