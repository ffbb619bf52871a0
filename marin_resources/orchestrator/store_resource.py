"""StoreResource: the storage of a Dagster deployment."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from marin_resources.settings import default_prefix
from marin_resources.storage.control.control import refuse_store_without_conditions
from marin_resources.storage.output.store import Store


class StoreResource(dg.ConfigurableResource):
    """Outputs below one prefix."""

    prefix: str = Field(default="", description="A folder or URL; MARIN_PREFIX, or <root>/outputs, if empty.")

    wait_for_others: bool = Field(
        default=True, description="Whether to wait for an output that another run computes, or to fail."
    )

    def store(self) -> Store:
        """The store of the prefix. Raises SettingError for a prefix without conditional writes."""
        prefix = self.prefix or default_prefix()
        refuse_store_without_conditions(prefix)
        return Store(prefix)
