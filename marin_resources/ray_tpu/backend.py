"""The interface between a run and the back end that computes its tasks: submit, attach, wait, stop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from marin_resources.ray_tpu.requirements import MissingByStep, Requirements
from marin_resources.ray_tpu.site import PlacementRequest, Site
from marin_resources.types.output import Holder
from marin_resources.wire.outcome import Outcome
from marin_resources.wire.task import Task


class Handle(Protocol):
    """A task that was submitted to a back end."""

    @property
    def job(self) -> str | None:
        """The id of its job on a cluster; None if the task is not a job."""

    def describe(self) -> str:
        """Return where it runs, as a phrase: "as job … on …", or an empty text for a local task."""


H = TypeVar("H", bound=Handle)


class SubmissionLeftError(RuntimeError):
    """This process detached before the cluster confirmed a job: a phrase with the way to attach to it."""


class Backend(Protocol[H]):
    """Runs tasks. The same task submitted twice is the same handle."""

    @property
    def prefixes(self) -> Sequence[str]:
        """Prefixes of further regions, in which inputs may be stored."""

    async def attempt_for(self, path: str) -> int:
        """Return the number of the next attempt at the output at `path`: a new one, or that of a submitted task that
        has not started."""

    async def attach(self, path: str, holder: Holder) -> H | None:
        """Return the handle of the task that holds the lease of the output at `path`; None for another back end's."""

    def satisfies(self, required: Requirements) -> bool:
        """Whether it satisfies the requirements, as far as that is known without a look at nodes and indexes."""

    def missing_by_step(self, required: Sequence[Requirements]) -> MissingByStep:
        """Return all missing requirements, by step name. Looks at the nodes and at package indexes. May block."""

    async def site(self, needs: Callable[[], PlacementRequest], path: str) -> Site | None:
        """Return the cluster for a step whose output is at `path`; None if no choice exists, and then `needs` is not
        called. Call it after `attempt_for`. Raises NoSiteError."""

    def check(self, task: Task) -> None:
        """Raise MissingRequirementError if the task's environment is known to lack one of its requirements."""

    async def submit(
        self,
        task: Task,
        on_job: Callable[[str], None] = lambda job: None,
        should_detach: Callable[[], bool] = lambda: False,
    ) -> H:
        """Submit the task, or attach to it if it is submitted. Raises UnmeetableError at once if no node can ever run
        it.

        On a cluster, `on_job` is called with the id of a new job before the job is submitted. It may block. A
        cancellation before the response stops the job, which may have begun; with `should_detach` the job keeps running
        and SubmissionLeftError replaces CancelledError.
        """

    async def wait(self, handle: H, on_log: Callable[[str], None]) -> Outcome:
        """Wait for the task's outcome. Call `on_log` with each printed line as it arrives."""

    async def detach(self, handle: H, *, force: bool) -> str | None:
        """Detach from the task. Return a message if it keeps running, None if the caller must stop it.

        It keeps running if another run waits for it or, where tasks outlive this process, with `force`.
        """

    async def stop(self, handle: H, reason: str) -> None:
        """Stop the task and all that it started. Return when its worker is gone."""

    def shutdown(self) -> None:
        """Release the resources of this process: it needs the back end no longer."""


def missing_requirements(
    backend: Backend[Any], required: Sequence[Requirements], needless: Callable[[Sequence[str]], Collection[str]]
) -> MissingByStep:
    """Return all missing requirements of the steps, by step name.

    `needless` returns which of the named steps will not be computed. It is called only if some step may lack something,
    and nodes and indexes are queried only for the remaining steps.
    """
    doubtful = [requirements for requirements in required if not backend.satisfies(requirements)]
    if not doubtful:
        return {}
    without = needless([requirements.step for requirements in doubtful])
    remaining = [requirements for requirements in doubtful if requirements.step not in without]
    missing_by_step = backend.missing_by_step(remaining) if remaining else {}
    return {
        requirements.step: missing_by_step[requirements.step]
        for requirements in remaining
        if requirements.step in missing_by_step
    }
