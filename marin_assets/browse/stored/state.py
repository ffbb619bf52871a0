"""The state of an output, by the folder of its control files, and the output that a file belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from marin_assets.browse.places import Place, Places
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Status
from marin_resources.types.places import relative_to
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

THREADS = 16
Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class OutputState:
    """An output as it was read."""

    place: Place
    status: Status | None
    """None if it cannot be read."""
    record: Record = field(default_factory=Record)
    damage: str = ""
    """One sentence about a control file that cannot be used."""

    @property
    def is_complete(self) -> bool:
        return self.status is Status.SUCCESS

    @property
    def data_path(self) -> str:
        """The path of its data: another one than its own if they were adopted, or computed by another cluster."""
        return self.record.data_path or self.place.path


def state_at(place: Place) -> OutputState | None:
    """The state of the output in this folder; None if the folder has no status. Raises UnavailableError."""
    try:
        status = read_status(place.path)
    except ControlFileError as error:
        return OutputState(place=place, status=None, damage=str(error))
    if status is None:
        return None
    try:
        return OutputState(place=place, status=status, record=read_record(place.path) or Record())
    except ControlFileError as error:
        return OutputState(place=place, status=status, damage=str(error))


def complete_at(place: Place) -> OutputState | None:
    """The state of an output that has a marker, by its record alone; None if it was removed and its marker was not.

    Raises UnavailableError.
    """
    try:
        record = read_record(place.path)
    except ControlFileError as error:
        return OutputState(place=place, status=Status.SUCCESS, damage=str(error))
    return None if record is None else OutputState(place=place, status=Status.SUCCESS, record=record)


def owner_of(places: Places, place: Place) -> OutputState | None:
    """The output that a file or a folder is in, or is itself; None if it is in none. Raises UnavailableError."""
    for text in (place.text, *reversed(place.parents)):
        above = place if text == place.text else places.resolve(text)
        state = state_at(above)
        if state is not None:
            return state
    return None


def inputs_of(state: OutputState) -> list[str]:
    """The paths of its inputs, below today's prefix if the whole prefix was moved since."""
    then = (state.record.prefix or state.place.prefix).rstrip("/")
    paths = []
    for path in (dependency.rstrip("/") for dependency in state.record.dependencies):
        relative = relative_to(path, [then, state.place.prefix])
        paths.append(path if relative is None else join(state.place.prefix, relative))
    return paths


def read_each(places: Places, read: Callable[[Given], Made], items: Sequence[Given]) -> list[Made]:
    """Return what `read` returns for each item, in their order: of a bucket several at a time."""
    if all(map(is_local, places.prefixes)):  # threads would take longer to start
        return list(map(read, items))
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(read, items))
