"""Choose what is beside the rows of a file: the outputs along its lineage that have a file of the same name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_assets.browse.errors import BrowseError
from marin_assets.browse.pages.columns_beside import MOST, place_in_output
from marin_assets.browse.pages.file_of_rows import file_of_rows
from marin_assets.browse.places import Places
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.lineage import THREADS, Lineage
from marin_assets.browse.stored.state import OutputState
from marin_assets.browse.stored.verdicts import is_consolidation
from marin_resources.storage.files import stored_file
from marin_resources.storage.paths import join


def beside_choice(asked: Asked) -> Shown:
    """The outputs to choose from. Those that read this one are chosen unless the address has others."""
    shown, chosen, start = file_of_rows(asked), asked.query.texts("beside"), asked.query.number("start")
    owner, name = place_in_output(shown)
    lineage = Lineage(asked.places, owner)
    states = [state for state in lineage.along(owner) if state.place.text != owner.place.text]
    with ThreadPoolExecutor(THREADS) as pool:
        has_file = list(pool.map(lambda state: _has_file(asked.places, state, name), states))
    states = [state for state, has in zip(states, has_file, strict=True) if has]
    readers = {state.place.text for state in lineage.readers_of(owner) if not is_consolidation(state)}
    checked = chosen or [state.place.text for state in states if state.place.text in readers][:MOST]
    facts: dict[str, Any] = {
        "shown": shown,
        "start": start,
        "name": name,
        "entries": [_entry(state, state.place.text in checked) for state in states],
        "most": MOST,
        "without": address("rows", path=shown.place.text, start=start),
    }
    return Shown(template="beside_choice", facts=facts)


def _entry(state: OutputState, is_checked: bool) -> dict[str, Any]:
    return {"name": state.record.name or state.place.text, "text": state.place.text, "is_checked": is_checked}


def _has_file(places: Places, state: OutputState, name: str) -> bool:
    try:
        return bool(stored_file(places.resolve(join(state.data_path, name)).path))
    except (FileNotFoundError, NotADirectoryError, BrowseError):
        return False
