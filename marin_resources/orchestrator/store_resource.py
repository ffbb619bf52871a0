"""StoreResource: the storage of a Dagster deployment."""

from __future__ import annotations

from functools import cache

import dagster as dg
from pydantic import Field

from marin_resources.configuration.settings import default_prefix, normalize_prefix
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.output.store import Store


class StoreResource(dg.ConfigurableResource):
    """Outputs below one prefix."""

    prefix: str = Field(default="", description="A folder or URL; MARIN_PREFIX, or <root>/outputs, if empty.")

    wait_for_others: bool = Field(
        default=True, description="Whether to wait for an output that another run computes, or to fail."
    )

    @property
    def home(self) -> str:
        """The prefix, as an absolute path or URL. Raises SettingError."""
        return normalize_prefix(self.prefix) if self.prefix else default_prefix()

    def store(self) -> Store:
        """The store of the prefix.

        Raises SettingError for a prefix without conditional writes, UnavailableError if it cannot be connected to.
        """
        prefix = self.home
        refuse_store_without_conditions(prefix)
        _require_reachable_once(prefix)
        return store_at(prefix)


@cache
def _require_reachable_once(prefix: str) -> None:
    """Only for the first step of a run: later ones ride out an outage by the retries of the store's client."""
    require_reachable(prefix)
