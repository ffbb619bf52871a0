"""The back end of a fleet: each task goes to the cluster that is chosen for it, and is a job there.

Notes of jobs are at the home, so an attempt has one job in all clusters together. Who finds a note of another cluster
attaches to the job there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from marin_resources.ray_tpu.backend import Backend
from marin_resources.ray_tpu.cluster.backend import ClusterBackend
from marin_resources.ray_tpu.cluster.handle import JobHandle
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.settings_from_env import settings_from_env
from marin_resources.ray_tpu.fleet.choose import choose_site, may_hold, missing_site
from marin_resources.ray_tpu.fleet.fleet import Fleet, fleet_from_env
from marin_resources.ray_tpu.requirements import MissingByStep, MissingRequirement, Requirements
from marin_resources.ray_tpu.site import PlacementRequest, Site
from marin_resources.storage.output.notes import job_notes
from marin_resources.types.output import Holder
from marin_resources.wire.outcome import Outcome
from marin_resources.wire.task import Task


def backend_at(
    cluster: str | None, prefix: str, backend_of: Callable[[ClusterSettings], ClusterBackend]
) -> Backend[JobHandle]:
    """The back end of the cluster, or of the fleet, of `cluster`, else of MARIN_CLUSTER, for outputs below `prefix`.

    Raises SettingError.
    """
    fleet = fleet_from_env(cluster, prefix)
    if fleet is not None:
        return FleetBackend(fleet, backend_of)
    settings = settings_from_env(cluster)
    assert settings is not None  # the caller has called `is_on_cluster`
    return backend_of(settings)


class FleetBackend:
    """Tasks as jobs of several clusters."""

    def __init__(self, fleet: Fleet, backend_of: Callable[[ClusterSettings], ClusterBackend]) -> None:
        self.fleet = fleet
        self._backends = {member.name: backend_of(member.settings) for member in fleet.members}
        self._names = {member.settings.address: member.name for member in fleet.members}
        self._at: dict[str, str] = {}
        """Output path -> the cluster that has the job of its open note."""

    @property
    def prefixes(self) -> Sequence[str]:
        return [prefix for prefix in self.fleet.prefixes() if prefix != self.fleet.home]

    async def site(self, needs: Callable[[], PlacementRequest], path: str) -> Site | None:
        return await asyncio.to_thread(lambda: choose_site(needs(), self.fleet, self._at.get(path)))

    def satisfies(self, required: Requirements) -> bool:
        return self._first.satisfies(required)

    def missing_by_step(self, required: Sequence[Requirements]) -> MissingByStep:
        """A step lacks a requirement if all clusters that could hold it lack it."""
        unplaceable = {
            requirements.step: (missing_site(requirements.resources, self.fleet),)
            for requirements in required
            if not self._able(requirements)
        }
        missing: dict[str, list[tuple[MissingRequirement, ...]]] = {
            requirements.step: [] for requirements in required if requirements.step not in unplaceable
        }
        for member in self.fleet.members:
            able = [requirements for requirements in required if member.name in self._able(requirements)]
            of_member = self._backends[member.name].missing_by_step(able) if able else {}
            for requirements in able:
                missing[requirements.step].append(of_member.get(requirements.step, ()))
        return {
            **unplaceable,
            **{step: of_members[0] for step, of_members in missing.items() if all(of_members)},
        }

    def check(self, task: Task) -> None:
        self._of(task).check(task)

    async def attempt_for(self, path: str) -> int:
        note = await asyncio.to_thread(job_notes.newest_note_above_fence, path)
        name = None if note is None else self._names.get(note.dashboard)
        number = await (self._first if name is None else self._backends[name]).attempt_for(path)
        self._at.pop(path, None)
        if note is not None and name is not None and number == note.attempt:
            self._at[path] = name
        return number

    async def attach(self, path: str, holder: Holder) -> JobHandle | None:
        note = await asyncio.to_thread(job_notes.read_note, job_notes.note_path(path, holder.attempt))
        if note is None:
            return None
        name = self._names.get(note.dashboard)
        if name is not None:
            return await self._backends[name].attach(path, holder)
        for backend in self._backends.values():  # the submitter has reached it by another address, such as a tunnel's
            handle = await backend.attach(path, holder)
            if handle is not None:
                return handle
        return None

    async def submit(
        self,
        task: Task,
        on_job: Callable[[str], None] = lambda job: None,
        should_detach: Callable[[], bool] = lambda: False,
    ) -> JobHandle:
        handle = await self._of(task).submit(task, on_job, should_detach)
        name = self._names.get(handle.note.dashboard)
        if handle.submitted_here or name in (None, task.cluster):
            return handle
        assert name is not None  # another run has sent the same attempt to another cluster
        return await self._backends[name].join(handle.note, handle.note_path, handle.output_path)

    async def wait(self, handle: JobHandle, on_log: Callable[[str], None]) -> Outcome:
        return await self._at_address(handle).wait(handle, on_log)

    async def detach(self, handle: JobHandle, *, force: bool) -> str | None:
        return await self._at_address(handle).detach(handle, force=force)

    async def stop(self, handle: JobHandle, reason: str) -> None:
        await self._at_address(handle).stop(handle, reason)

    def shutdown(self) -> None:
        for backend in self._backends.values():
            backend.shutdown()

    @property
    def _first(self) -> ClusterBackend:
        return next(iter(self._backends.values()))

    def _able(self, required: Requirements) -> list[str]:
        return [member.name for member in self.fleet.members if may_hold(required.resources, member.cluster)]

    def _of(self, task: Task) -> ClusterBackend:
        return self._backends[task.cluster]

    def _at_address(self, handle: JobHandle) -> ClusterBackend:
        return self._backends[self._names[handle.address]]
