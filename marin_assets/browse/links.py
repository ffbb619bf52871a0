"""Links between Dagster's UI and the data browser of a deployment, both ways.

link_of_output    from the asset's page to the data
links_of_state    from the page of an output to the asset, the record and the log
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from marin_assets.browse.places import Places
from marin_assets.browse.query import address
from marin_assets.browse.stored.state import OutputState
from marin_assets.catalog.asset_key import key_of_name
from marin_assets.catalog.asset_page import page_of_asset
from marin_resources.configuration.data_browser import browser_address, further_prefixes
from marin_resources.configuration.settings import default_prefix
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.files import stored_file
from marin_resources.storage.output.attempts import latest_attempt, log_path
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError


@dataclass(frozen=True, kw_only=True)
class StateLinks:
    """The addresses of what belongs to an output; empty for what it lacks."""

    asset: str = ""
    """Page in Dagster's UI, where the address of a UI is set."""
    record: str = ""
    """The text of its place."""
    log: str = ""
    """The text of the place of its last log."""
    log_bytes: int = 0


def shown_prefixes(store: Store) -> list[str]:
    """The prefixes that the browser shows: that of outputs, those of its regions, and MARIN_BROWSE_PREFIXES."""
    return [store.prefix, *store.regions, *further_prefixes()]


def link_of_output(path: str) -> str | None:
    """The address of an output in the data browser of MARIN_BROWSE_URL.

    None without that, and for a path that the browser does not show: outside of its prefixes. The path is whole in the
    address, so that it holds for whatever prefix the browser has first.
    """
    browser = browser_address()
    if not browser or Places(shown_prefixes(store_at(default_prefix()))).text_of(path) is None:
        return None
    return f"{browser}{address('output', path=path)}"


def links_of_state(places: Places, state: OutputState) -> StateLinks:
    """The links of an output's page. Raises UnavailableError."""
    path = state.place.path
    record, log = join(path, RECORD), "" if state.record.adopted else log_path(path, _attempt(state))
    size = _size(log)
    return StateLinks(
        asset=_asset_page(state.record),
        record=_text(places, record) if _size(record) is not None else "",
        log=_text(places, log) if size is not None else "",
        log_bytes=size or 0,
    )


def _asset_page(record: Record) -> str:
    ui = os.environ.get("MARIN_UI_URL", "")
    key = tuple(record.asset_key) or (key_of_name(record.name) if record.name else ())
    partition = record.partition if isinstance(record.partition, str) else None
    return page_of_asset(ui, key, partition) if ui and key else ""


def _attempt(state: OutputState) -> int:
    """The attempt that made a complete output, which the record has unless it is Marin's; else the latest."""
    try:
        return (state.is_complete and state.record.attempt) or latest_attempt(state.place.path)
    except ControlFileError:  # a damaged commit object: the page shows the output without its log
        return 0


def _size(path: str) -> int | None:
    """The bytes of a file; None if it does not exist."""
    try:
        return stored_file(path).size_bytes if path else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _text(places: Places, path: str) -> str:
    return places.text_of(path) or ""
