"""The things that a page is made from: the places of the server, its limits, and the query of the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.limits import Limits, RequestWatch
from marin_assets.browse.places import Place, Places
from marin_assets.browse.query import Query
from marin_assets.browse.stored.state import OutputState, owner_of
from marin_resources.storage.files import StoredFile, stored_file


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request."""

    places: Places
    limits: Limits
    query: Query
    watch: RequestWatch

    def place(self, name: str = "path") -> Place:
        """The place of the address, by the name of its value. Raises BrowseError."""
        return self.places.resolve(self.query.text(name))

    def file(self, name: str = "path") -> tuple[Place, StoredFile]:
        """The file of the address. Raises BrowseError; NotThereError if it is none."""
        place = self.place(name)
        try:
            if place.text and place.path != place.prefix:
                return place, stored_file(place.path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        raise NotThereError(f"No file exists at {place.text!r:.300}. Open the output, and a file of it.")

    def owner(self, place: Place) -> OutputState | None:
        """The output of a file. Raises UnavailableError."""
        return owner_of(self.places, place)


class Waiting(Protocol):
    """A part of the facts that is computed while the page is written."""

    def call_before_waiting(self, send: Callable[[], None]) -> None:
        """Set a function to call before it waits: it sends the text that was written until then."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A page: its template, and the facts that it shows."""

    template: str
    facts: Mapping[str, Any]
    waits: Waiting | None = None
    """The part that the page waits for: then it is sent while it is written. None: it is sent whole."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """Lines of JSON that the browser stores as a file."""

    content: bytes
    name: str
    """Name of the file."""


@dataclass(frozen=True, kw_only=True)
class WholePage:
    """A page that is not made from a template of the browser."""

    html: str
    policy: str
    """The content security policy of this page."""
