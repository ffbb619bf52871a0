"""StoreResource: what a Dagster deployment configures of its storage."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from marin_resources.settings import default_prefix
from marin_resources.storage.lease import refuse_prefix_without_leases
from marin_resources.storage.store import Store


class StoreResource(dg.ConfigurableResource):
    """Outputs below one prefix."""

    prefix: str = Field(default="", description="A folder or URL; MARIN_PREFIX, or <root>/outputs, if empty.")

    def store(self) -> Store:
        """Raises SettingError for a prefix that cannot be written safely."""
        prefix = self.prefix or default_prefix()
        refuse_prefix_without_leases(prefix)
        return Store(prefix)
