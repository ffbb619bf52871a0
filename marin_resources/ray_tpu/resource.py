"""RayTPUResource: what a Dagster deployment configures of its compute."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from marin_resources.ray_tpu.backend import Backend
from marin_resources.ray_tpu.local import LocalBackend


class RayTPUResource(dg.ConfigurableResource):
    """Runs tasks on Ray. Without an address, a local Ray that starts with the first task and ends with the run."""

    cpus: int | None = Field(default=None, description="CPUs that the local Ray may use; all of them if not set.")
    lost_worker_budget: int = Field(
        default=3, description="How often a step is tried again after its worker died; a failing function is not."
    )
    _backend: Any = PrivateAttr(default=None)

    @property
    def backend(self) -> Backend:
        """The back end, made on first use."""
        if self._backend is None:
            self._backend = LocalBackend(cpus=self.cpus)
        return self._backend

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        if self._backend is not None:
            self._backend.shutdown()
            self._backend = None
