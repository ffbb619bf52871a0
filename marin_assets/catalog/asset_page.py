"""The address of an asset's page in Dagster's UI."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode


def page_of_asset(ui: str, key: Sequence[str], partition: str | None = None) -> str:
    """The page of the asset in the UI at the address `ui`, at the partition if one is given."""
    page = f"{ui.rstrip('/')}/assets/{'/'.join(quote(part, safe='') for part in key)}"
    return page if partition is None else f"{page}?{urlencode({'view': 'partitions', 'partition': partition})}"
